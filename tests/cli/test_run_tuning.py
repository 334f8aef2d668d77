"""`paddle-tfm run` of a recipe that tunes: what is trained and chosen, stopped and continued, and what is said of it."""

import json
from pathlib import Path

import pytest
from command_line import call, write_recipe

from paddle_tfm import create_registry
from paddle_tfm.recipe import loading, yaml_lines
from paddle_tfm.sweep.sweep import Sweep
from paddle_tfm.train.trainer import Interrupted

pytestmark = pytest.mark.reliability

RECIPE = """
base: tiny.yaml
name: mine
variants: {a: {}, b: {model.norm: rms}}
seeds: [1, 2]
tune:
  space:
    train.schedule.peak: {log: [1e-3, 3e-2]}
    model.dropout: [0.0, 0.1]
  trials: 3
  widen: 1
  untuned: true
evaluate: {best: loss}
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_recipe(tmp_path, RECIPE, "base", "task.min_length=2")


def read(path):
    return json.loads(Path(path).read_text("utf-8"))


def numbers(folder):
    """What the runs of a sweep came to, without times."""
    files = sorted(Path(folder).rglob("results.json"))
    return {
        str(file.parent.relative_to(folder)): [read(file)[key] for key in ("valid", "test", "seed")] for file in files
    }


def test_each_variant_is_tuned_stopped_continued_and_reported_on_other_seeds(recipe):
    done = call("check", "mine.yaml", "--no-step")
    assert (done.status, done.out, done.err) == (
        0,
        "mine.yaml is sound: 2 variants × 2 seeds, each tuned by 3 trials\n"
        "note: in the training split too: 0 of 6 sources and 0 pairs of valid; 0 of 6 sources and 0 pairs of test\n",
        "",
    )
    done = call("run", "mine.yaml", "--dry-run")
    assert "14 runs, " in done.out and "3 trials of each variant; 6 trials more where the space is widened" in done.out
    assert not Path("runs").exists()

    done = call("run", "mine.yaml", "--workers=1", "--out=one")
    assert done.status == 0, done.err
    record, whole = read("one/tuning.json"), numbers("one")
    number = 3 * len(record["spaces"])
    trials = {name: result for name, result in whole.items() if "trial-" in name}
    assert len(trials) == 2 * number and len(whole) == 2 * number + 4 + 4
    for variant in "ab":
        # Chosen by the validation split, on a seed that is not reported; the test split was never looked at.
        mine = {name: result for name, result in trials.items() if name.startswith(f"tuning/{variant}/")}
        assert all(test == {} and seed == 0 for _, test, seed in mine.values())
        best = min(mine, key=lambda name: mine[name][0]["loss"])
        assert record["variants"][variant]["chosen"] == int(best[-2:])
        tried = yaml_lines.load_file(Path("one", best, "recipe.yaml"))[0]
        for seed in (1, 2):
            data = yaml_lines.load_file(Path("one", variant, f"seed-{seed}", "recipe.yaml"))[0]
            assert data["train"]["schedule"] == tried["train"]["schedule"] and data["model"] == tried["model"]
            assert data["seeds"] == [seed] and "tune" not in data
            assert whole[f"{variant}/seed-{seed}"][1]
            own = yaml_lines.load_file(Path("one/tuning", variant, f"untuned-seed-{seed}", "recipe.yaml"))[0]
            assert own["train"]["schedule"] == yaml_lines.load_file(Path("tiny.yaml"))[0]["train"]["schedule"]

    # Trials are no seeds of their variants, for nobody.
    compared = read("one/comparison.json")
    assert [row["seeds"] for row in compared["rows"]] == [[1, 2], [1, 2]]
    assert {"tuning", "untuned"} <= compared["sections"].keys()
    again = json.loads(call("compare", "one", "--json", "--out=elsewhere").out)
    assert again["rows"] == compared["rows"] and again["sections"]["untuned"] == compared["sections"]["untuned"]
    assert "tuned  a: train.schedule.peak" in done.out and "untuned  " in done.out
    watched = call("ls", "runs", "one").out
    assert f"{len(whole)} of {len(whole)} done" in watched and "2 seeds" in watched
    assert sorted(read("one/command.json")["runs"]) == sorted(whole)

    # Stopped and continued, one trial by somebody else: the same.
    assert call("run", "mine.yaml", "--out=two", "--cell=tuning/b/trial-03").status == 0
    looks = iter([False] * 12)
    sweep = Sweep(
        loading.load("mine.yaml"), create_registry(), Path("two"), resume=True, stop=lambda: next(looks, True)
    )
    with pytest.raises(Interrupted):
        sweep.run()
    assert 0 < len(numbers("two")) < 6 and not Path("two/tuning.json").exists()
    done = call("run", "mine.yaml", "--out=two", "--resume", "--workers=1")
    assert done.status == 0, done.err
    assert numbers("two") == whole and read("two/tuning.json") == record
