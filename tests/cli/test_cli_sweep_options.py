"""A sweep asked for in one line: several values, --seeds, --baseline."""

import json
from pathlib import Path

import pytest
from command_line import TINY, call

from paddle_tfm.recipe.loading import load

LISTS = ("model.norm=layer,rms", "model.placement=pre,post")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.reliability
def test_a_sweep_in_one_line_and_the_recipe_that_it_is():
    line = ("run", "reverse", *TINY, "model.norm=layer,rms", "--seeds", "2", "--baseline", "rms", "--workers=1")
    done = call(*line, "--out", "one", "--json")
    assert done.status == 0, done.err
    compared = json.loads(done.out)
    assert compared["baseline"] == "rms"
    assert sorted((run["variant"], run["seed"]) for run in compared["runs"]) == [
        ("layer", 1), ("layer", 2), ("rms", 1), ("rms", 2),
    ]  # fmt: skip
    shown = call("show", "reverse", *TINY, "model.norm=layer,rms", "seeds=[1, 2]", "baseline=rms")
    Path("mine.yaml").write_text(shown.out, "utf-8")
    for name in ("layer/seed-2", "rms/seed-1"):  # the same runs: nothing is left to train
        done = call("run", "mine.yaml", "--out", "one", "--resume", "--cell", name)
        assert (done.status, done.err) == (0, f"{name} is finished already\n")
    assert load("mine.yaml").data["baseline"] == "rms"


def test_check_and_show_read_the_same_line():
    done = call("check", "reverse", *LISTS, "seeds=[1, 2, 3]", "--no-step")
    assert done.status == 0 and "4 variants × 3 seeds" in done.out
    Path("shown.yaml").write_text(call("show", "reverse", *LISTS).out, "utf-8")
    assert [run.data for run in load("shown.yaml").runs()] == [run.data for run in load("reverse", LISTS).runs()]


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--seeds", "0"], "--seeds 0: must be 1 to 1,000 seeds"),
        (
            ["--seeds", "three"],
            "--seeds three: must be how many, such as 5, or a list of numbers below 2**31, such as 3,7,9",
        ),
        (["--seeds", "3,,7"], "--seeds 3,,7: must be"),
        (["model.norm=layer,rms", "--baseline", "rsm"], "unknown variant 'rsm'; did you mean 'rms'? Known: layer, rms"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence_before_anything_is_written(options, sentence, tmp_path):
    done = call("run", "reverse", *TINY, *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err
    assert not list(tmp_path.iterdir())
