"""A grid as an ablation, and a full model without its parts: against contrasts written out in NumPy and SciPy, and in
simulations of grids where nothing, or one thing alone, differs."""

import itertools
import json
import math

import numpy as np
import pytest
from finished_runs import finished
from scipy import stats

from paddle_tfm import create_registry
from paddle_tfm.comparison.ablation import contrast, effects, grid, verdicts_on
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare

NORMS, POSITIONS, DEPTHS = ["layer", "rms"], ["none", "sin", "alibi"], ["2", "6"]
FACTORS = {"model.norm": NORMS, "model.position": POSITIONS}
BASE = {"model.norm": "layer", "model.position": "none"}
SEEDS = 5
# [norm, position]: rms does nothing, sin and alibi help; alibi helps less with rms
TRUE = np.array([[0.3, 0.5, 0.6], [0.3, 0.5, 0.45]])


def train(root, values, factors=FACTORS, **more):
    """A sweep of a grid, finished: `values` [seeds, levels of each factor…], NaN where a run diverged."""
    cells = list(itertools.product(*factors.values()))
    names = ["-".join(levels) for levels in cells]
    levels = {path: {name: cell[i] for name, cell in zip(names, cells)} for i, path in enumerate(factors)}
    runs = []
    for seed, row in enumerate(values.reshape(len(values), -1), 1):
        for name, value in zip(names, row):
            lost = {"diverged": "lost", "test": {}} if math.isnan(value) else {}
            runs.append(f"{name}/seed-{seed}")
            finished(root / runs[-1], name, seed, {"exact_match": float(value)}, data="d", **lost)
    (root / "command.json").write_text(json.dumps({"runs": runs, "factors": levels, **more}), "utf-8")


def compared(root, baseline="layer-none"):
    return compare(collect([root]), "r", root, "exact_match", baseline)


def scores(rng, seeds=SEEDS):
    """Scores of `TRUE`: what a seed shares, and what each run has by itself."""
    return TRUE + 0.05 * rng.standard_normal((seeds, 1, 1)) + 0.01 * rng.standard_normal((seeds, *TRUE.shape))


def test_effects_are_paired_t_tests_of_averages_adjusted_by_holm(tmp_path, rng):
    values = scores(rng)
    train(tmp_path, values)
    here = grid(compared(tmp_path))
    assert here.seeds == [1, 2, 3, 4, 5] and not here.reason
    of_norm, of_position = values.mean(2), values.mean(1)  # [seeds, levels]
    inside = values - values[:, :1] - values[:, :, :1] + values[:, :1, :1]
    expected = {
        ("rms",): of_norm[:, 1] - of_norm[:, 0],
        ("sin",): of_position[:, 1] - of_position[:, 0],
        ("alibi",): of_position[:, 2] - of_position[:, 0],
        ("rms", "sin"): inside[:, 1, 1],
        ("rms", "alibi"): inside[:, 1, 2],
    }
    assert [tuple(effect.levels.values()) for effect, _ in here.effects] == list(expected)
    p = stats.ttest_1samp(np.array(list(expected.values())), 0, axis=1).pvalue / 0.8  # the first look's share
    adjusted, most = dict.fromkeys(range(5), 0.0), 0.0
    for step, place in enumerate(np.argsort(p)):
        adjusted[place] = most = min(1.0, max(most, (5 - step) * p[place]))
    for place, (values, (_, verdict)) in enumerate(zip(expected.values(), here.effects)):
        assert verdict.mean == pytest.approx(values.mean(), abs=1e-12) and verdict.p == pytest.approx(adjusted[place])
        low, high = stats.t.interval(1 - 0.8 * verdict.level, SEEDS - 1, values.mean(), stats.sem(values))
        assert (verdict.low, verdict.high) == pytest.approx((low, high))
    assert [verdict.verdict for _, verdict in here.effects] == ["undetermined", "better", "better", "undetermined", "worse"]
