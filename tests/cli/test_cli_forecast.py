"""`paddle-tfm run --dry-run`."""

import json

import numpy as np
import pytest
from command_line import TINY, call
from finished_runs import finished
from scipy import optimize, stats

from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.loading import load

LINE = ("run", "reverse", *TINY, "model.norm=layer,rms", "--workers=1")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def power_of_t(level, seeds):
    """The mean, in standard deviations, that a t test finds in 80% of simulated samples."""
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((40_000, seeds))
    means, errors = samples.mean(-1), samples.std(-1, ddof=1) / seeds**0.5
    bound = stats.t.isf(level / 2, seeds - 1)
    return optimize.brentq(lambda shift: (means + shift > bound * errors).mean() - 0.8, 0, 50)


def test_seeds_see_as_much_as_recorded_runs_of_the_recipe_say(tmp_path):
    grid = (*LINE, "model.position=none,alibi,sinusoidal", "--seeds=3", "--baseline=layer-none")
    recipe = load("reverse", [*TINY, "model.norm=layer,rms", "model.position=none,alibi,sinusoidal", "seeds=[1,2,3]"])
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((3, 6)) * 0.01 + rng.standard_normal((3, 1))
    known = dict(zip([(run.seed, run.variant) for run in recipe.runs()], scores.ravel()))
    for run in recipe.runs():
        folder = tmp_path / "runs/reverse" / run.name
        finished(folder, run.variant, run.seed, {"exact_match": float(known[run.seed, run.variant])})
        (folder / "recipe.yaml").write_text(yaml_lines.dump(run.data), "utf-8")
    sees = json.loads(call(*grid, "--dry-run", "--json").out)["sees"]
    assert [each["number"] for each in sees] == [5, 1, 2, 2]
    rest = scores - scores.mean(0) - scores.mean(1)[:, None] + scores.mean()
    deviation = (rest**2).sum() / (2 * 5)
    for each, share in zip(sees, [2, 2 / 3, 2 / 2, 4]):
        assert each["difference"] == pytest.approx(each["deviations"] * deviation**0.5)
        assert each["deviations"] == pytest.approx(share**0.5 * power_of_t(0.8 * 0.05 / 5, 3), rel=0.05)
    other = json.loads(call(*grid, "--dry-run", "--json", "train.label_smoothing=0.1").out)["sees"]
    assert "difference" not in other[0]  # those runs are of another recipe


def test_a_dry_run_says_what_it_would_cost_and_writes_nothing(trained, tmp_path):
    done = call(*LINE, "--seeds", "3", "--dry-run", "--json")
    assert done.status == 0, done.err
    forecast = json.loads(done.out)
    assert (forecast["runs"], forecast["at_once"]) == (6, 1)
    layer = forecast["variants"][0]
    results = json.loads((trained.folder / "results.json").read_text("utf-8"))  # the same run, trained
    assert (layer["variant"], layer["parameters"]) == ("layer", results["parameters"])
    assert layer["tokens"] == pytest.approx(results["tokens"], rel=0.25)  # four steps by the mean of twenty
    seen = [(each["what"], each["number"], each["deviations"]) for each in forecast["sees"]]
    least = power_of_t(0.8 * 0.05, 3)  # the first look spends 80% of the level
    assert seen == [("a variant against layer", 1, pytest.approx(2**0.5 * least, rel=0.03))]
    assert forecast["seconds"] == pytest.approx(3 * sum(each["seconds"] for each in forecast["variants"]), abs=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--dry-run", "--cell", "layer/seed-1"], "--dry-run is about all runs of a recipe, and --cell about one"),
        (["--dry-run", "--executor", "local"], "--dry-run measures this machine, and --executor trains elsewhere"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence_and_nothing_is_written(options, sentence, tmp_path):
    done = call(*LINE, *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err
    assert not list(tmp_path.iterdir())
