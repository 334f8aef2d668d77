"""A grid as an ablation, and a full model without its parts: against contrasts written out in NumPy and SciPy, and in
simulations of 4,000 grids."""

import itertools
import json
import math

import numpy as np
import pytest
from finished_runs import finished
from scipy import stats

from paddle_tfm import create_registry
from paddle_tfm.comparison.ablation import contrast, effects, grid, left_out, no_effects
from paddle_tfm.comparison.report import sections
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.statistics import Listed
from paddle_tfm.comparison.table import compare

NORMS, POSITIONS, DEPTHS = ["layer", "rms"], ["none", "sin", "alibi"], ["2", "6"]
FACTORS = {"model.norm": NORMS, "model.position": POSITIONS}
BASE = {"model.norm": "layer", "model.position": "none"}
SEEDS = 5
# [norm, position]: sin and alibi help, alibi less with rms, and rms helps nothing on average
TRUE = np.array([[0.3, 0.5, 0.6], [0.35, 0.55, 0.5]])


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


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("shape", ["normal", "exponential"])
def test_at_most_five_percent_of_grids_have_an_interval_that_misses(seeds, shape, rng):
    """4,000 grids whose cells scatter by a factor of four, with what a seed shares: where nothing differs and where
    something does are the same, as what is tested is how far a contrast is from its true value."""
    cells = [dict(zip(FACTORS, levels)) for levels in itertools.product(*FACTORS.values())]
    weights = np.array([contrast(cells, BASE, effect) for effect in effects(FACTORS, BASE)])
    noise = getattr(rng, f"standard_{shape}")((4_000, seeds, 6)) - (shape == "exponential")
    grids = TRUE.ravel() + noise * [1, 2, 3, 4, 1, 1] + 5 * rng.standard_normal((4_000, seeds, 1))
    off = np.moveaxis(grids @ weights.T - weights @ TRUE.ravel(), 1, 2)
    missed = float((5 * Listed((3,)).p_values(off)[..., -1] <= 0.05).any(-1).mean())
    assert missed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4_000)
    assert missed > 0.02 or shape != "normal"  # not merely silent


def test_effects_are_paired_t_tests_of_averages_at_a_level_for_all(tmp_path, rng):
    values = scores(rng)
    train(tmp_path, values)
    comparison = compared(tmp_path)
    here = grid(comparison)
    assert here.seeds == [1, 2, 3, 4, 5] and not no_effects(comparison, here) + left_out(comparison, here)
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
    level = 0.8 * 0.05 / 5  # the first look spends 80% of the level
    for values, (_, verdict) in zip(expected.values(), here.effects):
        low, high = stats.t.interval(1 - level, SEEDS - 1, values.mean(), stats.sem(values))
        p = stats.ttest_1samp(values, 0).pvalue / 0.8 * 5
        assert (verdict.mean, verdict.low, verdict.high) == pytest.approx((values.mean(), low, high), abs=1e-9)
        assert verdict.p == pytest.approx(min(p, 1))
    said = [verdict.verdict for _, verdict in here.effects]
    assert said == ["undetermined", "better", "better", "undetermined", "worse"]


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """A report of the section alone: figures of the others take seconds."""
    monkeypatch.setattr(sections, "SECTIONS", {"ablation": sections.SECTIONS["ablation"]})


def written(comparison, tmp_path):
    """All that a report says: lines, page, and the files for a paper."""
    failed = []
    report = Report(comparison, create_registry(), failed.append, files=True)
    paths = report.write()
    assert not failed
    files = {file.name: file.read_bytes() for file in (tmp_path / "comparison").glob("ablation*")}
    data = json.loads(paths["json"].read_text("utf-8"))["sections"].get("ablation")
    return report.lines(), paths["page"].read_text("utf-8"), files, data


def test_what_a_grid_says_on_the_page_in_files_and_for_programs(tmp_path, rng):
    values = scores(rng)
    train(tmp_path, values)
    lines, page, files, data = written(compared(tmp_path), tmp_path)
    best = 100 * values[:, 0, 2].mean()
    assert f"<b>{best:.1f}" in page.replace("&nbsp;", " ") or f"<b>{best:.0f}" in page
    assert page.count('class="interval"') >= 6 and ">alibi</span>" in page
    assert rb"\textbf{" in files["ablation-matrix.tex"] and b"norm: rms against layer" in files["ablation-effects.tex"]
    assert b"standard deviation" not in files["ablation-matrix.tex"]  # its ± is another
    assert {"ablation-levels.svg", "ablation-levels.pdf"} <= files.keys() and b"sin" in files["ablation-levels.svg"]
    assert any("all 5 effects at once" in line for line in lines)
    low, high = stats.t.interval(0.95, SEEDS - 1, values[:, 0, 2].mean(), stats.sem(values[:, 0, 2]))
    cell = next(each for each in data["cells"] if list(each["levels"].values()) == ["layer", "alibi"])
    assert (cell["low"], cell["high"]) == pytest.approx((low, high))
    assert [each["verdict"] for each in data["effects"]] == [
        "undetermined",
        "better",
        "better",
        "undetermined",
        "worse",
    ]


def test_three_factors_are_rows_of_one_matrix_and_effects_average_over_the_others(tmp_path, rng):
    values = scores(rng)[..., None] + np.array([0.0, 0.2])
    train(tmp_path, values, {**FACTORS, "train.depth": DEPTHS})
    lines, _, files, data = written(compared(tmp_path, "layer-none-2"), tmp_path)
    by = {"·".join(each["levels"].values()): each for each in data["effects"]}
    assert len(by) == 1 + 2 + 1 + 2 + 1 + 2
    assert by["6"]["difference"] == pytest.approx(0.2)
    assert by["rms"]["difference"] == pytest.approx((values[:, 1] - values[:, 0]).mean())
    assert files["ablation-matrix.csv"].count(b"\n") == 1 + 6
    assert "Interactions of three factors or more are not tested." in lines


def test_a_cell_or_a_seed_that_is_missing_is_said(tmp_path, rng):
    values = scores(rng)
    train(tmp_path / "lost", np.where(np.arange(30).reshape(5, 2, 3) == 8, np.nan, values))
    comparison = compared(tmp_path / "lost")
    here = grid(comparison)
    assert no_effects(comparison, here).startswith("No effect is computed: 1 run diverged") and not here.effects
    assert here.diverged(("layer", "alibi")) == "1 of 5 diverged"

    train(tmp_path / "fewer", values)
    (tmp_path / "fewer/rms-sin/seed-2/results.json").unlink()
    comparison = compared(tmp_path / "fewer")
    here = grid(comparison)
    assert here.seeds == [1, 3, 4, 5]
    assert left_out(comparison, here).startswith("Not every cell has a run of seed 2")
    kept = values[[0, 2, 3, 4]]
    assert here.effects[0][1].mean == pytest.approx((kept[:, 1] - kept[:, 0]).mean())

    for seed in range(1, 6):
        (tmp_path / f"fewer/rms-none/seed-{seed}/results.json").unlink(missing_ok=True)
    comparison = compared(tmp_path / "fewer")
    missing = "No effect is computed: there is no finished run of “rms × none”."
    assert no_effects(comparison, grid(comparison)) == missing


def test_of_a_part_of_a_grid_its_levels_count(tmp_path, rng):
    values = scores(rng)
    train(tmp_path, values)
    four = [tmp_path / name for name in ("layer-none", "layer-alibi", "rms-none", "rms-alibi")]
    here = grid(compare(collect(four), "r", tmp_path, "exact_match", "layer-none"))
    assert list(here.factors.values()) == [NORMS, ["none", "alibi"]] and len(here.effects) == 3
    assert here.effects[0][1].mean == pytest.approx((values[:, 1, ::2] - values[:, 0, ::2]).mean())
    assert grid(compare(collect(four[::2]), "r", tmp_path, "exact_match", "layer-none")) is None


def test_a_grid_of_one_factor_is_a_comparison_of_variants(tmp_path, rng):
    train(tmp_path, scores(rng)[:, :, 0], {"model.norm": NORMS})
    assert grid(compared(tmp_path, "layer")) is None


def test_a_full_model_and_the_same_without_its_parts(tmp_path, rng):
    without = {"without-norm": "norm: rms → none", "without-position": "position: alibi → sinusoidal"}
    names = ["full", *without]
    values = np.array([0.9, 0.5, 0.7]) + 0.01 * rng.standard_normal((5, 3))
    for name, column in zip(names, values.T):
        for seed, value in enumerate(column, 1):
            finished(tmp_path / name / f"seed-{seed}", name, seed, {"exact_match": float(value)}, data="d")
    (tmp_path / "command.json").write_text(json.dumps({"taken_away": without}), "utf-8")
    comparison = compared(tmp_path, "full")
    _, _, files, data = written(comparison, tmp_path)
    assert data == {"models": {"full": "full"} | {name: f"− {text}" for name, text in without.items()}}
    rows = files["ablation.csv"].decode().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["full", "− norm: rms → none", "− position: alibi → sinusoidal"]
    assert f"{(values[:, 1] - values[:, 0]).mean():.5f}"[:6] in rows[1] and rows[1].endswith("worse")
    assert written(compared(tmp_path, "without-norm"), tmp_path)[3] is None  # differences are to another there
