"""A run's export on disk, and the commands that make it and translate through it."""

from __future__ import annotations

import json
import re
import types

import numpy as np
import pytest

from paddle_tfm import create_registry, hookimpl
from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.errors import UserError
from paddle_tfm.export import folder as folders
from paddle_tfm.export.ctranslate2.rules import ExportRefused, Rules
from paddle_tfm.export.ctranslate2.spec import load_ctranslate2, tokens
from paddle_tfm.export.folder import export, export_folder
from paddle_tfm_plugins.placement.pre import Pre


@pytest.fixture
def run(trained_run, tmp_path):
    """A run whose folder is this test's own."""
    import shutil

    import paddle_tfm

    shutil.copytree(trained_run.folder, tmp_path / "run")
    return paddle_tfm.load_run(tmp_path / "run")


# ----------------------------------------------------------------------------------------------------------- the folder


def test_it_holds_all_that_another_program_needs(run, rules):
    folder = export_folder(run)
    proof = export(run, rules, folder)
    assert (proof.sentences, proof.same) == (10, 10)
    config = json.loads((folder / "config.json").read_text())
    assert config["decoder_start_token"] == "<bos>" and config["add_source_eos"] is True
    page = json.loads((folder / "paddle_tfm.json").read_text())
    assert page["identity"] == run.identity()["hash"] and page["run"] == run.name and page["proof"]["same"] == 10
    shared = run.codec.source_vocabulary.pieces == run.codec.target_vocabulary.pieces
    vocabulary = json.loads((folder / f"{'shared' if shared else 'source'}_vocabulary.json").read_text())
    assert vocabulary == run.codec.source_vocabulary.pieces
    translator = load_ctranslate2().Translator(str(folder))
    texts = [run.codec.source.tokenize(example.example.source) for example in folders.proof_sentences(run)]
    results = translator.translate_batch(texts, beam_size=1, suppress_sequences=[["<pad>"], ["<bos>"]])
    plain = [run.codec.text(result.hypotheses[0]) for result in results]
    ours = run.translate([example.example.source for example in folders.proof_sentences(run)], search_of(run, "greedy"))
    assert all(whole.startswith(own) for whole, own in zip(plain, ours))  # ours end at twice the source and twenty
    assert plain[0] == ours[0]


def search_of(run, spec):
    import paddle_tfm

    return paddle_tfm.create_registry().build("search", spec, "")


class Backwards(Pre):
    """It computes something else than its rule says."""

    def wrap(self, i, x, sublayer, info):
        return super().wrap(i, -x, sublayer, info)


def test_a_failure_leaves_what_was_there(run, rules):
    folder = export_folder(run)
    export(run, rules, folder)
    before = sorted((file.name, file.stat().st_mtime_ns) for file in folder.iterdir())
    plugin, registry = types.ModuleType("mine"), create_registry()
    plugin.register_ctranslate2_rules = hookimpl(lambda: {Backwards: "paddle_tfm_plugins.ctranslate2.placement:pre"})
    registry.plugins.manager.register(plugin, name="mine")
    run.model.decoder.layers[0].placement.__class__ = Backwards
    with pytest.raises(ExportRefused, match="computes something else"):
        export(run, Rules(registry), folder)
    assert sorted((file.name, file.stat().st_mtime_ns) for file in folder.iterdir()) == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_somebody_elses_folder_is_not_replaced(run, rules, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="there are other files in it"):
        export(run, rules, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_file_that_somebody_put_into_an_export_is_not_removed(run, rules, tmp_path):
    for _ in range(2):
        export(run, rules, tmp_path / "model")
    (tmp_path / "model/source/notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"source/notes\.txt is no file of the export there"):
        export(run, rules, tmp_path / "model")
    assert (tmp_path / "model/source/notes.txt").read_text() == "mine"


def test_pieces_stay_different():
    pieces = [*SPECIAL, "a", "<pad>", "b", "a", "a", ""]
    made = tokens(pieces)
    assert len(set(made)) == len(pieces) and made[:5] == pieces[:5] and made[6] == "b"


def test_bfloat16_is_rounded_to_the_nearest(make_random, write):
    """Against float32 arithmetic: a number of 8 bits, at most half of its last bit away."""
    model = make_random()
    held, folder = write(model, "bfloat16")
    content = (folder / "model.bin").read_bytes()
    table = held.arrays["decoder/position_encodings/encodings"]
    name = b"decoder/position_encodings/encodings\0"
    begin = content.index(name) + len(name) + 1 + 2 * 4 + 1 + 4  # rank, two sizes, type, bytes
    bits = np.frombuffer(content[begin : begin + 2 * table.size], np.uint16).astype(np.uint32) << 16
    stored = bits.view(np.float32).reshape(table.shape)
    assert (np.abs(stored - table) <= np.abs(table) * 2.0**-8).all() and (stored != table).any()


# --------------------------------------------------------------------------------------------------------- the commands


def test_export_and_quantize(run, call):
    status, out, err = call("export", run.folder, "--to", "ctranslate2")
    assert status == 0 and "10 of 10 greedy outputs the same" in out and err == "comparing 10 outputs with Paddle's\n"
    folder = run.folder / "export" / "ctranslate2"
    assert str(folder) in out and (folder / "model.bin").is_file()
    status, out, _ = call("export", run.folder, "--to", "ctranslate2", "--quantize", "int8", "--out", run.folder / "q")
    assert status == 0
    shown = re.findall(r"^(.+?)  (.+) in float32, (.+) in int8$", out, re.MULTILINE)
    assert load_ctranslate2().Translator(str(run.folder / "q")).compute_type.startswith("int8")
    scores = json.loads((run.folder / "q" / "paddle_tfm.json").read_text())["scores"]
    assert scores["float32"].keys() == scores["int8"].keys() and scores["float32"]
    (exact,) = [each[1:] for each in shown if each[0] == "exact match"]  # a share, so in per cent
    assert exact == tuple(f"{100 * scores[kind]['exact_match']:.1f}%" for kind in ("float32", "int8"))


def test_an_old_version_is_refused(monkeypatch):
    module = load_ctranslate2()
    monkeypatch.setattr(module, "__version__", "4.7.2")
    with pytest.raises(UserError, match=r"must be of version 4\.8\.1 or later, but is 4\.7\.2"):
        load_ctranslate2()
