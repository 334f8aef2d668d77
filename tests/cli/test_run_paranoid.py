"""`paddle-tfm run … --paranoid`: what is not the same twice is named; what is leaves nothing behind."""

from __future__ import annotations

import json
import re

import pytest
from command_line import TINY, call

pytestmark = pytest.mark.reliability

NORM = """
import time

import numpy as np
import paddle

from paddle_tfm.hookspecs import hookimpl
from paddle_tfm_plugins.norm.layer import LayerNorm

WORDS = ["".join(part) for part in zip("abcdefgh", "ijklmnop")]


class Mine(LayerNorm):
    \"\"\"A norm with a factor.\"\"\"

    def forward(self, x, valid=None, positions=None):
        return super().forward(x, valid, positions) * (1 + 1e-4 * FACTOR)


@hookimpl
def register_norms():
    return {"mine": Mine}
"""
HIDDEN = {
    "a generator without a seed": "np.random.rand()",
    "a set's order": "WORDS.index(next(iter(set(WORDS)))) + WORDS.index(list(set(WORDS))[-1]) / 8",
    "the time": "(time.time() % 1)",
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)


def plugin(tmp_path, factor):
    file = tmp_path / "mine.py"
    file.write_text(NORM.replace("FACTOR", factor), "utf-8")
    return f"--plugin={file}"


@pytest.mark.parametrize("factor", HIDDEN.values(), ids=HIDDEN)
def test_what_is_not_the_same_twice_is_named(tmp_path, factor):
    norm = plugin(tmp_path, factor)
    for _ in range(4):  # a set of few texts has one order in two processes now and then
        done = call(
            "run",
            "reverse",
            *TINY,
            "model.norm=mine",
            norm,
            "--out=out",
            "--resume",
            "--paranoid",
            "--cell=default/seed-1",
        )
        if done.status == 1:
            break
    assert done.status == 1, done.err
    assert "default/seed-1, trained twice, is another run the second time (out-again/default/seed-1):" in done.out
    assert "model.safetensors: " in done.out and "differs: " in done.out
    assert (tmp_path / "out-again/default/seed-1/results.json").is_file()


def test_what_is_the_same_twice_leaves_nothing_behind(tmp_path):
    """Two variants by two workers, whose factor is a constant."""
    words = ("run", "reverse", *TINY, "variants={mine: {model.norm: mine}, layer: {}}", plugin(tmp_path, "0.5"))
    done = call(*words, "--out=out", "--workers=2", "--paranoid")
    assert done.status == 0, done.err
    for name in ("mine", "layer"):
        assert f"{name}/seed-1, trained twice: the same to the bit." in done.out
    assert "exact match" in done.out  # the comparison follows
    assert not (tmp_path / "out-again").exists()


def test_seconds_are_measured_for_both_trainings_at_once(tmp_path):
    """And what was finished before is trained once more, whose folder is gone afterwards."""
    words = ("run", "reverse", *TINY, "variants={layer: {}, deep: {model.feed_forward: swiglu}}", "equal=seconds")
    words += ("--out=out", "--workers=1")
    assert call(*words, "--cell=layer/seed-1").status == 0
    solved = json.loads((tmp_path / "out/equal.json").read_text("utf-8"))
    solved["deep"]["value"] = 2  # as if it had been measured so
    (tmp_path / "out/equal.json").write_text(json.dumps(solved), "utf-8")
    done = call(*words, "--resume", "--paranoid")
    assert done.status == 0 and done.out.count("trained twice: the same to the bit.") == 2, done.out + done.err
    assert json.loads((tmp_path / "out/deep/seed-1/results.json").read_text("utf-8"))["steps"] == 2
    assert not (tmp_path / "out-again").exists()


def test_a_second_folder_that_is_there_is_not_touched(tmp_path):
    (tmp_path / "out-again").mkdir()
    done = call("run", "reverse", *TINY, "--out=out", "--paranoid")
    assert done.status == 2 and "out-again, which is there already; remove it, or add --resume" in done.err
    assert not (tmp_path / "out").exists()
    for option, more in (("--dry-run", ()), ("--nodes=2", ("--node=0", "--address=h:1"))):
        done = call("run", "reverse", *TINY, "--out=out", "--paranoid", option, *more)
        assert done.status == 2 and "use one of the two" in done.err


def test_a_second_folder_that_is_a_link_is_not_touched(tmp_path):
    kept = tmp_path / "elsewhere/default/seed-1/kept"
    kept.parent.mkdir(parents=True)
    kept.touch()
    (tmp_path / "out-again").symlink_to("elsewhere")
    done = call("run", "reverse", *TINY, "--out=out", "--paranoid", "--resume", "--workers=1")
    assert done.status == 2 and "out-again: is a link, and what it leads to is not written to" in done.err
    assert [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()] == [kept]
    assert not (tmp_path / "out").exists()


def test_only_what_it_trained_is_removed(tmp_path):
    other = tmp_path / "out-again/mine/notes.txt"
    other.parent.mkdir(parents=True)
    other.write_text("another's")
    done = call("run", "reverse", *TINY, "--out=out", "--paranoid", "--resume")
    assert done.status == 0 and "default/seed-1, trained twice: the same to the bit." in done.out, done.err
    assert other.is_file() and not (tmp_path / "out-again/default/seed-1").exists()


def test_a_second_training_that_fails_is_no_other_run(tmp_path):
    """The constructor of its norm raises in the second folder alone."""
    fails = """    def __init__(self, d_model):
        assert not Path("out/default/seed-1/results.json").exists()
        super().__init__(d_model)

    def forward"""
    file = tmp_path / "mine.py"
    file.write_text("from pathlib import Path\n" + NORM.replace("FACTOR", "0").replace("    def forward", fails))
    done = call("run", "reverse", *TINY, "model.norm=mine", f"--plugin={file}", "--out=out", "--paranoid")
    assert done.status == 2, done.out
    assert "--paranoid: the second training of default/seed-1 failed, as is said above" in done.err
    assert "another run" not in done.out


def test_runs_that_did_not_begin_alike_prove_nothing(tmp_path, monkeypatch):
    """The first is finished on two threads; the second, on resume, is trained on one."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert call("run", "reverse", *TINY, "--out=out").status == 0
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    done = call("run", "reverse", *TINY, "--out=out", "--paranoid", "--resume")
    assert done.status == 1
    assert (
        "its last bits prove nothing, since the threads of each shard of its batches were 2 and now are 1" in done.out
    )
    assert "another run" not in done.out


def test_half_of_the_budget_is_for_the_second_training():
    done = call("run", "reverse", *TINY, "train.steps=1000000", "--out=out", "--paranoid", "--budget=40s")
    assert done.status == 2 and "half of the --budget is for the second training" in done.err
    left = re.search(r"and 0:(\d\d) is left", done.err)
    assert left and int(left[1]) <= 20
