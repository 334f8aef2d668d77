"""`paddle-tfm run … --cell`: one run of a recipe; and `--executor`, which distributes them."""

from __future__ import annotations

import json

import pytest
from command_line import TINY, call

from paddle_tfm.sweep.claim import claimed

pytestmark = pytest.mark.reliability

RECIPE = ("run", "reverse", *TINY, "seeds=[1, 2]", "variants={pre: {}, post: {model.placement: post}}", "--workers=1")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_one_run_is_trained_as_the_sweep_trains_it_and_nothing_is_compared(tmp_path):
    done = call(*RECIPE, "--out", "one", "--cell", "post/seed-2")
    assert done.status == 0, done.err
    assert done.out == "" and "1/1 post/seed-2" in done.err
    assert [file.parent.relative_to(tmp_path) for file in tmp_path.rglob("results.json")] == [
        (tmp_path / "one/post/seed-2").relative_to(tmp_path)
    ]
    assert not (tmp_path / "one/comparison.json").exists()
    assert "--cell" not in (tmp_path / "one/command.json").read_text("utf-8")

    assert call(*RECIPE, "--out", "all").status == 0
    for name in ("metrics.jsonl", "predictions.tsv", "checkpoints/best/model.safetensors"):
        one, other = (tmp_path / out / "post/seed-2" / name for out in ("one", "all"))
        assert one.read_bytes() == other.read_bytes(), name

    done = call(*RECIPE, "--out", "all", "--resume", "--cell", "post/seed-2")
    assert (done.status, done.err) == (0, "post/seed-2 is finished already\n")
    assert len(json.loads((tmp_path / "all/post/seed-2/about.json").read_text("utf-8"))["trainings"]) == 1
    done = call(*RECIPE, "--out", "one", "--cell", "post/seed-2")
    assert done.status == 2 and "one holds runs of this recipe already; add --resume" in done.err


def test_what_comes_back_is_what_was_asked_for(tmp_path):
    """Of commands that train with another recipe, as a machine does that has an older copy of it."""
    template = "{name: command, template: '{cell} model.dropout=0.5', at_once: 1}"
    done = call(*RECIPE[:-1], "--out=out", "--executor", template)
    said = "was trained otherwise than asked for: recipe changed: model.dropout was 0.5"
    assert done.status == 1 and done.err.count(said) == 4
    assert "4 of 4 runs failed: " in done.err


def test_its_variant_alone_is_checked():
    broken = [*RECIPE[:-2], "variants={pre: {}, wrong: {model.norm: nrm}}"]
    assert call(*broken, "--out", "out", "--cell", "pre/seed-1").status == 0
    done = call(*broken, "--out", "out", "--cell", "wrong/seed-1")
    assert done.status == 2 and "did you mean" in done.err


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--cell", "post/sed-2"], "--cell: unknown run 'post/sed-2'; did you mean 'post/seed-2'? Known: post/seed-1, "),
        (["--cell", "pre/seed-1", "--executor", "local"], "--cell trains one run, here; --executor distributes all of"),
        (["--cell", "pre/seed-1", "--of-sweep"], "out is not there on "),
        (["--executor", "lokal"], "--executor  unknown executor 'lokal'; did you mean 'local'? Known: command, local, ray"),
        (["--executor", "{name: command, atonce: 2}"], "--executor.atonce  'command' has no option 'atonce'; did you mean 'at_once'"),
        (["--executor", "command"], "--workers=1: command says itself how many runs it trains side by side"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_one_sentence(options, sentence):
    done = call(*RECIPE, "--out", "out", *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err


def test_a_run_that_another_process_trains_is_left_to_it(tmp_path):
    with claimed(tmp_path / "out/pre/seed-1"):
        done = call(*RECIPE, "--out", "out", "--cell", "pre/seed-1")
    assert done.status == 2
    assert done.err.startswith("Error: out/pre/seed-1 is being trained by process ")
