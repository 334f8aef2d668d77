"""Which engine translates, what it says of it, and what is kept of an export that was made or refused on the way."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys

import numpy as np
import pytest

import paddle_tfm
from paddle_tfm.errors import UserError
from paddle_tfm.export.engine import exported, open_engine
from paddle_tfm.export.folder import export, export_folder
from paddle_tfm.files import sha256

pytestmark = pytest.mark.reliability

LINES = ["1 2 3", "", "4", "0 5 1 2", "what is this", "3 3"]
EXPORTS = [
    "exporting to ctranslate2, once; Ctrl-C continues without it, and --engine paddle never makes one",
    "comparing 10 outputs with Paddle's",
    "exported to FOLDER: 10 of 10 greedy outputs the same",
    "engine: ctranslate2",
]
NO_RULE = "has no export rule; if CTranslate2 can hold it, write one (docs/export.md, A component of your own)"


@pytest.fixture
def run(trained_run, tmp_path):
    """A run whose folder is this test's own."""
    shutil.copytree(trained_run.folder, tmp_path / "run")
    return paddle_tfm.load_run(tmp_path / "run")


@pytest.fixture
def file(tmp_path):
    """Lines to translate."""
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n")
    return tmp_path / "in.txt"


def said(run, errors: str) -> list[str]:
    """What is said of engines; the rest is of texts and outputs."""
    lines = errors.replace(str(export_folder(run)), "FOLDER").splitlines()
    return [line for line in lines if line.startswith(("engine", "export", "comparing"))]


def search_of(components, spec):
    return components.build("search", spec, "")


# ----------------------------------------------------------------------------------------------------------------- auto


def test_a_file_is_exported_for_once_and_written_the_same(run, file, call):
    ours = call("translate", run.folder, "--input", file, "--engine", "paddle")
    first, again = (call("translate", run.folder, "--input", file) for _ in range(2))
    assert ours[0] == first[0] == again[0] == 0 and ours[1] == first[1] == again[1]
    assert said(run, ours[2]) == [] and said(run, first[2]) == EXPORTS and said(run, again[2]) == EXPORTS[-1:]


def test_texts_use_an_export_and_make_none(run, call):
    ours = call("translate", run.folder, *LINES)
    sentence = (
        "engine: paddle, as this run has no export yet, which takes longer than a few texts: `paddle-tfm export RUN "
    )
    assert said(run, ours[2]) == [f"{sentence}--to ctranslate2` makes it"] and not export_folder(run).exists()
    assert call("export", run.folder, "--to", "ctranslate2")[0] == 0
    theirs = call("translate", run.folder, *LINES)
    assert said(run, theirs[2]) == EXPORTS[-1:] and theirs[1] == ours[1]


def written(folder, **changed):
    page = json.loads((folder / "paddle_tfm.json").read_text())
    (folder / "paddle_tfm.json").write_text(json.dumps(page | changed))


STALE = {
    "a bit": lambda folder: (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:-1] + b"\x7f"),
    "a file": lambda folder: (folder / "config.json").unlink(),
    "the page": lambda folder: (folder / "paddle_tfm.json").write_text("{"),
    "of other weights": lambda folder: written(folder, weights="0"),
    "of other code": lambda folder: written(folder, components={"norm layer": "norm 0.1.0 sha256:0"}),
}


@pytest.mark.parametrize("stale", STALE)
def test_an_export_that_is_damaged_or_of_something_else_is_made_again(run, rules, components, stale):
    folder, lines = exported(run, rules), []
    before = (folder / "model.bin").read_bytes()
    STALE[stale](folder)
    for expected in (EXPORTS, EXPORTS[-1:]):
        assert open_engine(run, rules, "auto", search_of(components, "greedy"), report=lines.append) is not None
        assert said(run, "\n".join(lines)) == expected
        lines.clear()
    assert (folder / "model.bin").read_bytes() == before


def test_a_search_that_may_write_something_else_is_paddles(run, file, call):
    arguments = ("translate", run.folder, "--input", file, "--search")
    _, own, _ = call(*arguments, "{name: beam, size: 3}", "--engine", "paddle")
    status, out, err = call(*arguments, "{name: beam, size: 3}")
    sentence = (
        "engine: paddle, as search 'beam' may give other outputs with ctranslate2 (--engine ctranslate2 takes it)"
    )
    assert (status, out, said(run, err)) == (0, own, [sentence])
    status, _, err = call(*arguments, "sampling")
    assert (status, said(run, err)) == (0, [f"engine: paddle, as search 'sampling' {NO_RULE}"])
    assert not export_folder(run).exists()


def test_a_gpu_is_paddles(run, rules, components):
    lines: list[str] = []
    assert open_engine(run, rules, "auto", search_of(components, "greedy"), device="gpu:0", report=lines.append) is None
    assert lines == ["engine: paddle, as Paddle computes on gpu:0"]


def test_where_ctranslate2_is_not_installed(run, file, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)  # as if it were not
    status, _, err = call("translate", run.folder, "--input", file)
    assert status == 0 and said(run, err)[0].startswith("engine: paddle, as CTranslate2 is not installed: pip install")
    commands = [
        ("export", run.folder, "--to", "ctranslate2"),
        ("translate", run.folder, "--engine", "ctranslate2", "1"),
    ]
    for command in commands:
        status, _, err = call(*command)
        assert status == 2 and 'pip install "ctranslate2>=4.8.1"' in err and "Traceback" not in err


# --------------------------------------------------------------------------------------------------------------- refused

RULES = """
from paddle_tfm import hookimpl
from paddle_tfm_plugins.norm.layer_std import LayerStd

def layer_std(norm):
    return {"gamma": norm.weight.numpy() * %s, "beta": norm.bias.numpy(), "eps": norm.eps}

@hookimpl
def register_ctranslate2_rules():
    return {LayerStd: layer_std}
"""


@pytest.fixture(scope="module")
def not_held(tmp_path_factory):
    """A run with a norm that has no rule: its eps stands outside the root."""
    overrides = [
        "task={name: reverse, symbols: 6, min_length: 1, max_length: 6, train: 200, valid: 10, test: 10}",
        "model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1",
        "model.max_length=32", "train.max_tokens=256", "train.steps=20", "evaluate.every=20", "model.norm=layer_std",
        "train.schedule={name: inverse_sqrt, peak: 3e-3, warmup: 5}",
    ]  # fmt: skip
    (folder,) = paddle_tfm.run("base", overrides, out=tmp_path_factory.mktemp("not_held") / "out")
    return folder


def test_a_refusal_is_remembered_until_something_changes(not_held, tmp_path, file, call):
    shutil.copytree(not_held, tmp_path / "run")
    run = paddle_tfm.load_run(tmp_path / "run")

    def says(*options):
        status, _, err = call("translate", run.folder, "--input", file, *options)
        assert status == 0, err
        return said(run, err)

    reason = f"engine: paddle, as norm 'layer_std' {NO_RULE}"
    assert says() == [EXPORTS[0], reason] and says() == [reason]
    assert sorted(path.name for path in export_folder(run).parent.iterdir()) == ["ctranslate2-refused.json"]
    page = export_folder(run).with_name("ctranslate2-refused.json")
    for key in ("weights", "ctranslate2", "components"):  # of another export
        page.write_text(json.dumps(json.loads(page.read_text()) | {key: "0"}))
        assert says() == [EXPORTS[0], reason]

    rule = tmp_path / "rule.py"
    rule.write_text(RULES % "-1.0")
    failed = says("--plugin", rule)
    assert failed[:2] == EXPORTS[:2] and failed[2].startswith("engine: paddle, as CTranslate2 computes something else")
    assert says("--plugin", rule) == failed[2:]
    assert [path.name for path in export_folder(run).parent.iterdir()] == ["ctranslate2-refused.json"]
    rule.write_text(RULES % "0.9682458")  # sqrt(15 / 16): its variance is of C − 1
    assert says("--plugin", rule) == EXPORTS and says("--plugin", rule) == EXPORTS[-1:]
    assert [path.name for path in export_folder(run).parent.iterdir()] == ["ctranslate2"]

    status, out, err = call("translate", not_held, "1 2", "--engine", "ctranslate2")
    assert (status, out) == (2, "") and err.endswith("own); --engine paddle translates without it\n")


# ------------------------------------------------------------------------------------------------------ what goes wrong


def opened(run, rules, components, report):
    return open_engine(run, rules, "auto", search_of(components, "greedy"), report=report)


def test_a_folder_that_cannot_be_written(run, rules, components):
    """A file stands where the folder would: the rights of a folder do not stop an administrator."""
    (run.folder / "export").write_text("")
    lines: list[str] = []
    assert opened(run, rules, components, lines.append) is None
    assert lines[-1].startswith(f"engine: paddle, as the export cannot be written: {run.folder / 'export'}")


def test_a_full_disk(run, rules, components):
    lines, before = [], resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))  # the system refuses in the middle of a write
    try:
        assert opened(run, rules, components, lines.append) is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "engine: paddle, as the export cannot be written: " in lines[-1] and lines[-1].endswith(": File too large")
    assert list((run.folder / "export").iterdir()) == []
    assert opened(run, rules, components, lines.append) is not None


def test_ctrl_c_continues_without_an_export(run, rules, components):
    lines: list[str] = []

    def report(text):
        lines.append(text)
        if text.startswith("comparing"):
            os.kill(os.getpid(), signal.SIGINT)

    assert opened(run, rules, components, report) is None
    assert lines == [*EXPORTS[:2], "engine: paddle, as the export was stopped"]
    assert list((run.folder / "export").iterdir()) == []


def no_model(folder):
    """Its page lists the file: another version of CTranslate2 wrote it, say."""
    (folder / "model.bin").write_bytes(b"no model")
    files = json.loads((folder / "paddle_tfm.json").read_text())["files"]
    written(folder, files=files | {"model.bin": sha256(folder / "model.bin")})


def test_a_model_that_cannot_be_loaded_is_a_sentence(run, rules, components):
    export(run, rules, export_folder(run))
    no_model(export_folder(run))
    sentence = "CTranslate2 cannot load it: .*remove it to export again"
    with pytest.raises(UserError, match=sentence):
        open_engine(run, rules, "ctranslate2", search_of(components, "greedy"))
    lines: list[str] = []
    assert opened(run, rules, components, lines.append) is None
    assert "CTranslate2 cannot load it" in lines[-1]


# ------------------------------------------------------------------------------------------------------ named engines


@pytest.mark.parametrize(
    "options",
    [
        ("--search", "greedy"),
        ("--search", "{name: greedy, min_length: 5, max_length: 6, no_repeat_ngram: 2}", "--scores"),
        ("--search", "greedy", "--prefix", "1 1", "--nbest", "1"),
    ],
)
def test_it_writes_the_same(run, call, options, tmp_path):
    ours, theirs = (
        call("translate", run.folder, *options, "--engine", engine, "--attention", tmp_path / engine, *LINES)
        for engine in ("paddle", "ctranslate2")
    )
    assert ours[0] == theirs[0] == 0, theirs
    assert theirs[2].startswith("comparing 10 outputs") and theirs[2].endswith(ours[2])  # what is said of the texts
    for name in ("alignments.txt", "source.pieces", "target.pieces"):
        assert (tmp_path / "paddle" / name).read_text() == (tmp_path / "ctranslate2" / name).read_text()
    for a, b in zip(ours[1].split("\n"), theirs[1].split("\n")):
        (text, *scores), (other, *others) = a.split("\t"), b.split("\t")
        if "--nbest" in options:
            assert a == b
            continue
        assert text == other
        np.testing.assert_allclose([float(x) for x in others], [float(x) for x in scores], atol=2e-4)


def test_a_beam_of_the_engine(run, call):
    arguments = ("translate", run.folder, "--search", "{name: beam, size: 3}", "--nbest", "3", "--scores", *LINES)
    status, out, _ = call(*arguments, "--engine", "ctranslate2")
    assert status == 0
    numbers = [line.split("\t")[0] for line in out.splitlines()]
    assert sorted(set(numbers)) == ["1", "2", "3", "4", "5", "6"] and max(map(numbers.count, numbers)) <= 3


def test_what_the_engine_cannot_do_is_said(run, call):
    status, out, err = call("translate", run.folder, "--search", "sampling", "1", "--engine", "ctranslate2")
    assert (status, out) == (2, "")
    assert err == f"Error: search 'sampling' {NO_RULE}; --engine paddle translates without it\n"
