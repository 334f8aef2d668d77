"""CTranslate2's folders: what our own export writes, read again; and damaged ones."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

pytest.importorskip("ctranslate2", reason="the extra [ctranslate2]")

import paddle

import paddle_tfm
from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.export.ctranslate2.rules import Rules
from paddle_tfm.export.ctranslate2.spec import save
from paddle_tfm.export.ctranslate2.variables import variables
from paddle_tfm.imports.ctranslate2 import read_argos, read_ctranslate2
from paddle_tfm.imports.run_folder import import_model

SIZE = 30
PIECES = [*SPECIAL, *(f"w{i}" for i in range(4, SIZE))]
SMALL = ["model.d_model=32", "model.d_ff=48", "model.max_length=64"]
CASES = [
    [],
    ["model.placement=post", "model.head=tied", "model.feed_forward=swish"],
    ["model.norm=rms", "model.feed_forward=geglu", "model.position=learned", "model.source_end=false"],
    ["model.share_embeddings=true", "vocabulary.shared=true", "model.feed_forward={name: swish, beta: 1.702}"],
    ["model.placement={name: steps, embedding: n, top: n}", "model.position={name: sinusoidal, halves: true}"],
    ["model.placement={name: steps, before: n, after: da, top: n, embedding: n}", "model.scale_embedding=false"],
]


def exported(folder, overrides, quantization="float32"):
    """A random model, and its folder for CTranslate2."""
    model = paddle_tfm.build_model("base", [*SMALL, *overrides], source_vocabulary=SIZE, target_vocabulary=SIZE)
    rng = np.random.default_rng(0)
    for name, parameter in model.named_parameters():
        if "embedding" not in name:
            parameter.set_value(parameter + paddle.to_tensor(rng.normal(0, 0.1, parameter.shape).astype("float32")))
    model.eval()
    held = variables(model, Rules(paddle_tfm.create_registry()), quantization)
    folder.mkdir()
    save(held, [PIECES, PIECES], quantization, folder)
    return model, folder


def log_probs(model):
    ids = paddle.to_tensor([[4, 9, 7, 20, 2], [5, 6, 2, 0, 0]])
    memory = model.encode(ids, ids != 0)
    h, _ = model.decode(paddle.to_tensor([[1, 8, 5, 11], [1, 4, 4, 29]]), model.start(memory))
    return model.head.log_probs(h, memory).numpy()


@pytest.mark.parametrize("overrides", CASES, ids=str)
def test_what_we_export_is_read_as_it_was(tmp_path, overrides):
    model, folder = exported(tmp_path / "ct2", overrides)
    import_model(read_ctranslate2(folder), tmp_path / "run", paddle_tfm.create_registry(), [])
    run = paddle_tfm.load_run(tmp_path / "run")
    assert run.codec.source_vocabulary.pieces == PIECES
    np.testing.assert_allclose(log_probs(run.model), log_probs(model), atol=2e-5)


def test_int8_is_read_with_a_remark(tmp_path):
    model, folder = exported(tmp_path / "ct2", [], "int8")
    foreign = read_ctranslate2(folder)
    assert "its matrices are of int8, and are float32 from now on" in foreign.remarks[0]
    weight = model.encoder.layers[0].feed_forward.inner.weight.numpy()
    step = np.abs(weight).max(0) / 127  # CTranslate2 has one scale for each output
    assert (np.abs(foreign.arrays["encoder.layers.0.feed_forward.inner.weight"] - weight) <= 0.51 * step).all()


def test_an_argosmodel_is_a_folder_and_a_sentencepiece_model(tmp_path):
    import io

    import sentencepiece

    content = io.BytesIO()
    texts = iter([" ".join(f"w{i}" for i in range(4, SIZE))] * 20)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=texts, model_writer=content, vocab_size=15, hard_vocab_limit=False, minloglevel=2
    )
    _, folder = exported(tmp_path / "ct2", ["model.source_end=false"])
    with zipfile.ZipFile(tmp_path / "en_de.argosmodel", "w") as package:
        for path in folder.iterdir():
            package.write(path, f"en_de/model/{path.name}")
        package.writestr("en_de/sentencepiece.model", content.getvalue())
    foreign = read_argos(tmp_path / "en_de.argosmodel")
    assert foreign.sides["source"].sentencepiece == content.getvalue()
    assert foreign.recipe["model"]["source_end"] is False and foreign.origin["model"].endswith("en_de.argosmodel")


def spoilt(folder, change):
    _, folder = exported(folder, [])
    path = folder / "model.bin"
    path.write_bytes(change(path.read_bytes()))


def configured(folder, **values):
    _, folder = exported(folder, [])
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **values}))


BAD = {
    "half a file": (lambda f: spoilt(f, lambda data: data[:5000]), "model.bin: damaged: it ends too early"),
    "another version": (lambda f: spoilt(f, lambda data: b"\5" + data[1:]), "the binary format must be version 6, but is 5"),
    "a size": (lambda f: spoilt(f, lambda data: data.replace(b"\x30\0\0\0\x20\0\0\0", b"\x30\0\0\0\xff\xff\xff\x7f", 1)), "is not of its size"),
    "a beginning": (lambda f: configured(f, add_source_bos=True), "it asks for `add_source_bos`, which nothing here computes"),
    "relative positions": (lambda f: exported(f, ["model.position=shaw"]), "there is no encoder/position_encodings/encodings"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(tmp_path, call, case):
    break_it, sentence = BAD[case]
    break_it(tmp_path / "ct2")
    done = call("import", tmp_path / "ct2", "--out", tmp_path / "run")
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err, done.err
