"""Marian's models: every option beside its formulas in NumPy; what its decoder wrote with a model of its own; and files
that are damaged, or ask for what is not computed."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import marian_numpy as marian
import numpy as np
import paddle
import pytest

import paddle_tfm
from paddle_tfm.imports.marian import read_marian
from paddle_tfm.imports.run_folder import import_model

PRE = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}
UNTIED = {"tied-embeddings-all": False}
BOTH_NORMED = {"encoder": "normed", "decoder": "normed"}
CASES = {  # name: options, keys of a pre-norm self-attention, activation where it is not the option's, --as-trained
    "post-norm": ({}, BOTH_NORMED),
    "pre-norm": (PRE, {"encoder": "normed", "decoder": "first"}),
    "pre-norm as trained": (PRE, BOTH_NORMED, None, True),
    "pre-norm of 1.10": ({**PRE, "version": "v1.10.0"}, {"encoder": "raw", "decoder": "raw"}),
    "dropout before, sum before dropout": (
        {"transformer-preprocess": "nd", "transformer-postprocess": "adn"},
        {"encoder": "normed", "decoder": "first"},
    ),
    "norm of branches, sum at the top": (
        {"transformer-preprocess": "d", "transformer-postprocess": "nda", "transformer-postprocess-top": "dan"},
        BOTH_NORMED,
    ),
    "norm twice": ({"transformer-postprocess": "nan", "transformer-postprocess-top": "nd"}, BOTH_NORMED),
    "no residual": ({"transformer-postprocess": "n"}, BOTH_NORMED),
    "norm of embeddings": ({"transformer-postprocess-emb": "nd", "transformer-ffn-activation": "gelu"}, BOTH_NORMED),
    "RMS norm": ({"transformer-postprocess": "dar", "transformer-postprocess-emb": "r"}, BOTH_NORMED),
    "old gelu": ({"transformer-ffn-activation": "gelu", "version": "v1.12.0"}, BOTH_NORMED, "old gelu"),
    "nothing tied, no bias": ({**UNTIED, "output-omit-bias": True, "transformer-ffn-activation": "relu"}, BOTH_NORMED),
    "sides tied": ({**UNTIED, "tied-embeddings-src": True}, BOTH_NORMED),
    "target tied": ({**UNTIED, "tied-embeddings": True}, BOTH_NORMED),
    "all tied one by one": ({**UNTIED, "tied-embeddings": True, "tied-embeddings-src": True}, BOTH_NORMED),
    "depths, heads, inner widths": (
        {"enc-depth": 3, "dec-depth": 1, "transformer-heads": 2, "transformer-decoder-dim-ffn": 20},
        BOTH_NORMED,
    ),
}  # fmt: skip


def logits_and_outputs(options, keys, activation, as_trained, folder):
    """The largest difference of log-probabilities to the formulas, over four pairs of random texts, and how many greedy
    outputs take the formulas' most probable piece at each step."""
    options, rng = {**marian.OPTIONS, **options}, np.random.default_rng(1)
    weights = marian.random_weights(options)
    foreign = read_marian(marian.write(folder / "marian", options, weights), as_trained)
    import_model(foreign, folder / "run", paddle_tfm.create_registry(), [])
    run = paddle_tfm.load_run(folder / "run")
    theirs = marian.Marian(options, weights, keys, activation or options["transformer-ffn-activation"])
    size, furthest, same = options["dim-vocabs"][1], 0.0, 0
    for length in (1, 4, 7, 10):
        source, target = rng.integers(2, size, length), rng.integers(2, size, 8)
        expected = theirs.log_probs([*source, 0], target)
        ids = paddle.to_tensor([[*(source + 2), 2]])  # ours: padding, begin, end, unknown, and the rest in order
        memory = run.model.encode(ids, paddle.ones_like(ids).astype("bool"))
        h, _ = run.model.decode(paddle.to_tensor([[1, *(target + 2)]]), run.model.start(memory))
        ours = run.model.head.log_probs(h, memory).numpy()[0, :, 2:]
        furthest = max(furthest, float(np.abs(ours - expected).max()))
        (greedy,) = run.hypotheses(
            [" ".join(f"w{i}" for i in source)], run.search() if run.search().nbest == 1 else None
        )
        if run.search().nbest == 1:
            chosen = [0 if i == 2 else i - 2 for i in greedy[0].ids]
            best = theirs.log_probs([*source, 0], chosen)
            best[:, 1] = -np.inf
            same += best.argmax(-1)[: len(chosen)].tolist() == chosen
    return furthest, same


@pytest.mark.parametrize("name", CASES)
def test_every_option_is_computed_as_marian_does(tmp_path, name):
    options, keys, *more = CASES[name]
    (tmp_path / "marian").mkdir()
    (tmp_path / "marian" / "decoder.yml").write_text(
        "beam-size: 1\nvocabs: [vocab.yml, vocab.yml]\nmodels: [model.npz]\n"
    )
    furthest, same = logits_and_outputs(options, keys, *(more + [None, False][len(more) :]), tmp_path)
    print(f"{name}: {furthest:.1e}, {same} of 4")
    assert furthest < 2e-4 and same == 4


# ------------------------------------------------------------------------------------------- a model of Marian's own

DATA = Path(os.environ.get("PADDLE_TFM_DATA", "")) / "marian-en-de"
trained = pytest.mark.skipif(not (DATA / "model.npz").is_file(), reason="PADDLE_TFM_DATA must hold marian-en-de")


@trained
def test_some_sentences_are_translated_as_marian_did(tmp_path, call):
    for name, file in (("source.en", "val200.en"), ("val.greedy.pieces", "val200.greedy.pieces")):
        lines = (DATA / file).read_text("utf-8").splitlines()[:8]
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
    done = call(
        "import", DATA, "--out", tmp_path / "run", "--compare", tmp_path / "source.en", tmp_path / "val.greedy.pieces"
    )
    assert done.status == 0 and "proof     val.greedy.pieces: 8 of 8 outputs the same" in done.out, done.err
    proof = json.loads((tmp_path / "run" / "proof.json").read_text())
    assert proof["origin"]["version"].startswith("v1.12.42") and proof["compared"][0]["same"] == 8
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["test"]["chrf"] > 50
    assert call("check", tmp_path / "run").status == 0
    assert call("report", tmp_path / "run", "--quick").status == 0
    assert "val.greedy.pieces" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert call("compare", tmp_path / "run").status == 0


@trained
@pytest.mark.slow
def test_all_sentences_are_translated_as_marian_did(tmp_path, call):
    done = call("import", DATA, "--out", tmp_path / "run")
    assert "greedy.pieces: 200 of 200 outputs the same" in done.out
    assert "normalize0.6.pieces: 200 of 200 outputs the same" in done.out


# --------------------------------------------------------------------------------------------------------- bad input


class Code:
    """What a pickle would run."""

    def __reduce__(self):
        return os.abort, ()


def header(shape):
    """A .npy file that says that it has this shape, and holds four bytes."""
    text = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"abcd"


def with_member(folder, name, content):
    import zipfile

    with zipfile.ZipFile(folder / "model.npz", "a") as file:
        file.writestr(name, content)


def made(folder, *, without=(), weights=None, options=None, extra=None):
    options = {**marian.OPTIONS, **(options or {})}
    arrays = {**marian.random_weights({**marian.OPTIONS}), **(weights or {})}
    return marian.write(folder, options, {name: arrays[name] for name in arrays if name not in without}, extra)


def pickled(folder):
    with_member(
        made(folder),
        "more.npy",
        b"\x93NUMPY\x01\x00"
        + (text := b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}").__len__().to_bytes(2, "little")
        + text
        + pickle.dumps(Code()),
    )


def cut(folder):
    path = made(folder) / "model.npz"
    path.write_bytes(path.read_bytes()[:3000])


BAD = {
    "a pickle": (pickled, "model.npz: no .npz file that can be read: Object arrays cannot be loaded"),
    "half a file": (cut, "model.npz: no .npz file that can be read"),
    "a huge size": (lambda f: with_member(made(f), "more.npy", header((1 << 40, 1 << 20))), "model.npz: no .npz file that can be read: "),
    "an unknown option": (lambda f: made(f, options={"transformer-pool": True}), "it asks for `transformer-pool: True`, which nothing here computes"),
    "another layer": (lambda f: made(f, options={"transformer-decoder-autoreg": "rnn"}), "`transformer-decoder-autoreg: rnn`, which nothing here computes (known is self-attention)"),
    "lemmas": (lambda f: made(f, options={"lemma-dim-emb": 8}), "`lemma-dim-emb: 8`"),
    "a deeper feed-forward": (lambda f: made(f, options={"transformer-ffn-depth": 3}), "`transformer-ffn-depth: 3`"),
    "a highway": (lambda f: made(f, options={"transformer-postprocess": "dhn"}), "h is a step that nothing here computes (known are d, a, n, r)"),
    "no matrix": (lambda f: made(f, without=["decoder_l2_ffn_W1"]), "there is no matrix decoder_l2_ffn_W1, which the model needs"),
    "a matrix too many": (lambda f: made(f, weights={"Wpos": np.zeros((4, 16), "float32")}), "1 of its matrices belong to no part of the model that is known here, such as Wpos"),
    "another shape": (lambda f: made(f, weights={"Wemb": np.zeros((30, 8), "float32")}), "Wemb must have the shape [30, 16], but has [30, 8]"),
    "whole numbers": (lambda f: made(f, weights={"Wemb": np.zeros((30, 16), "int8")}), "Wemb must hold floating-point numbers, but holds int8"),
    "no vocabulary": (lambda f: (made(f) / "vocab.yml").unlink(), "its vocabularies are not known"),
    "no end": (lambda f: (made(f) / "vocab.yml").write_text("a: 0\nb: 1\n"), "it has no piece </s>"),
    "no options": (lambda f: made(f, options={"type": "amun"}), "it asks for `type: amun`, which nothing here computes (known is transformer)"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(tmp_path, call, case):
    break_it, sentence = BAD[case]
    break_it(tmp_path / "model")
    done = call("import", tmp_path / "model", "--out", tmp_path / "run")
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err, done.err
    assert not (tmp_path / "run").exists()


def test_a_file_that_names_no_model_is_named_itself(tmp_path, call):
    (tmp_path / "mine.yaml").write_text("steps: 3\n")
    done = call("import", tmp_path / "mine.yaml", "--out", tmp_path / "run")
    assert done.status == 2 and "mine.yaml: it must be, hold or name one .npz file, but has none" in done.err


def test_a_folder_with_files_in_it_is_not_replaced(tmp_path, call):
    made(tmp_path / "model")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("x")
    done = call("import", tmp_path / "model", "--out", tmp_path / "run")
    assert done.status == 2 and "there are other files in it; name a new folder" in done.err
    assert (tmp_path / "run" / "mine").read_text() == "x"
