"""A sweep asked for in one line: several values, --seeds, --baseline, --save."""

import json
from pathlib import Path

import pytest
from command_line import TINY, call

from paddle_tfm.recipe.loading import load

LISTS = ("model.norm=layer,rms", "model.placement=pre,post")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_sweep_in_one_line_and_the_recipe_that_it_was(tmp_path):
    line = ("run", "reverse", *TINY, "model.norm=layer,rms", "--seeds", "2", "--baseline", "rms", "--workers=1")
    Path("mine.yaml.partial").write_text("somebody else's")
    done = call(*line, "--out", "one", "--save", "mine.yaml", "--json")
    assert done.status == 0, done.err
    compared = json.loads(done.out)
    assert compared["baseline"] == "rms"
    assert sorted((run["variant"], run["seed"]) for run in compared["runs"]) == [
        ("layer", 1), ("layer", 2), ("rms", 1), ("rms", 2),
    ]  # fmt: skip
    assert (tmp_path / "mine.yaml").read_text("utf-8").startswith("# paddle-tfm run reverse ")
    assert Path("mine.yaml.partial").read_text() == "somebody else's"

    for name in ("layer/seed-2", "rms/seed-1"):  # the same runs: nothing is left to train
        done = call("run", "mine.yaml", "--out", "one", "--resume", "--cell", name)
        assert (done.status, done.err) == (0, f"{name} is finished already\n")
    assert load("mine.yaml").data["baseline"] == "rms"

    done = call(*line, "--out", "other", "--save", "mine.yaml")
    assert done.status == 2 and "--save mine.yaml: is there already" in done.err and not (tmp_path / "other").exists()


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
        (["--seeds", "3,3"], "must be distinct, but are [3, 3]"),
        (["model.norm=layer,rms", "--baseline", "rsm"], "unknown variant 'rsm'; did you mean 'rms'? Known: layer, rms"),
        (["--save", "mine.txt"], "--save mine.txt: a recipe's name ends in .yaml"),
        (["--save", "none/mine.yaml"], "--save none/mine.yaml: there is no folder none"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence_before_anything_is_written(options, sentence, tmp_path):
    done = call("run", "reverse", *TINY, *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err
    assert not list(tmp_path.iterdir())
