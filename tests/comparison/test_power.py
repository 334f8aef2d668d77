"""What the seeds of a recipe can see, before they are trained: against simulated t tests."""

from pathlib import Path

import numpy as np
import pytest
from finished_runs import finished
from scipy import optimize, stats

from paddle_tfm.comparison.power import power
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.loading import load

GRID = ("model.norm=layer,rms", "model.position=none,alibi,sinusoidal", "baseline=layer-none")


def found_by_t(level, seeds):
    """The mean, in standard deviations, that a t test finds in 80% of simulated samples."""
    samples = np.random.default_rng(0).standard_normal((40_000, seeds))
    means, errors = samples.mean(-1), samples.std(-1, ddof=1) / seeds**0.5
    bound = stats.t.isf(level / 2, seeds - 1)
    return optimize.brentq(lambda shift: (means + shift > bound * errors).mean() - 0.8, 0, 50)


def test_a_grid_of_three_seeds_by_recorded_runs_of_it(tmp_path, rng):
    recipe = load("reverse", [*GRID, "seeds=[1,2,3]"])
    scores = 0.01 * rng.standard_normal((3, 6)) + rng.standard_normal((3, 1))  # [seeds, variants]
    for run, value in zip(recipe.runs(), scores.ravel()):
        folder = finished(tmp_path / run.name, run.variant, run.seed, {"exact_match": float(value)})
        (folder / "recipe.yaml").write_text(yaml_lines.dump(run.data), "utf-8")
    rows = power(recipe, tmp_path).records()
    assert [(row["what"], row["number"]) for row in rows] == [
        ("a variant against layer-none", 5),
        ("main effect norm", 1),
        ("main effect position", 2),
        ("interaction norm × position", 2),
    ]
    rest = scores - scores.mean(0) - scores.mean(1)[:, None] + scores.mean()
    deviation = ((rest**2).sum() / (2 * 5)) ** 0.5
    least = found_by_t(0.8 * 0.05 / 5, 3)  # of five, at the first look, which spends 80% of the level
    for row, variance in zip(rows, [1 + 1, 1 / 3 + 1 / 3, 1 / 2 + 1 / 2, 4]):
        assert row["deviations"] == pytest.approx(variance**0.5 * least, rel=0.05)
        assert row["difference"] == pytest.approx(row["deviations"] * deviation)
    for place, needed in enumerate(row["seeds"] for row in rows):
        one_less, enough = (
            power(load("reverse", [*GRID, f"seeds={[*range(1, size + 1)]}"]), tmp_path).rows[place].deviations
            for size in (needed - 1, needed)
        )
        assert enough <= 1 < one_less  # standard deviation
    other = power(load("reverse", [*GRID, "seeds=[1,2,3]", "train.label_smoothing=0.1"]), tmp_path)
    assert "difference" not in other.records()[0]  # those runs are of another recipe


def record(folder, recipe, scores):
    for run, value in zip(recipe.runs(), np.ravel(scores)):
        lost = {"diverged": "lost", "test": {}} if np.isnan(value) else {}
        (folder / run.name).mkdir(parents=True)
        finished(folder / run.name, run.variant, run.seed, {"exact_match": float(value)}, **lost)
        (folder / run.name / "recipe.yaml").write_text(yaml_lines.dump(run.data), "utf-8")


def test_what_recorded_runs_say_for_people(tmp_path):
    """Two variants of two seeds: residuals are ±d / 2, so that s is d; what is beyond 100% cannot be seen."""
    recipe = load("reverse", ["model.norm=layer,rms", "seeds=[1,2]"])
    for deviation, s, least in ((0.001, "0.1 points", "2 points"), (0.2, "20.0 points", "none")):
        folder = tmp_path / s
        record(folder, recipe, [[0.5 + deviation, 0.5], [0.5, 0.5 + deviation]])
        table = power(recipe, folder)
        assert f", {s} in 4 runs in" in table.title
        assert {each.heading: each.cell(table.rows[0]) for each in table.columns}["that is"] == least
    record(tmp_path / "lost", recipe, [[0.5, np.nan], [0.6, 0.5]])
    assert "difference" not in power(recipe, tmp_path / "lost").records()[0]


def test_seeds_that_are_added_while_they_are_needed_count():
    few, more = (power(load("reverse", [*GRID, seeds]), Path()).rows[0].deviations
                 for seeds in ("seeds=[1,2,3]", "seeds={at_most: 6, looks: [3, 6]}"))  # fmt: skip
    assert more < few


def test_one_seed_sees_nothing_and_one_variant_is_compared_with_none(tmp_path):
    assert power(load("reverse", [*GRID, "seeds=[1]"]), tmp_path).rows[0].deviations == np.inf
    assert power(load("reverse"), tmp_path) is None
