"""Which seeds a sweep added, and why: looks computed again from finished runs, beside what the sweep trained."""

from __future__ import annotations

import numpy as np
from finished_runs import finished

from paddle_tfm import create_registry
from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.seeds import Seeds, decisions_of
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.recipe.sections.seeds import SeedPlan
from paddle_tfm.sweep.added_seeds import stages
from paddle_tfm.sweep.cells import Cell

PLAN = SeedPlan(at_most=8, looks=[3, 5, 8])
NOISE = np.random.default_rng(5).normal(0, 0.01, 8)
BASE = 0.5 + np.random.default_rng(6).normal(0, 0.02, 8)
SCORES = {"base": BASE, "far": BASE - 0.3 + NOISE, "near": BASE + 0.1 * NOISE, "late": BASE + 0.03 + 0.5 * NOISE[::-1]}


def write(root, scores, seeds):
    """Finished runs of `seeds` of each variant: variant → how many, or which."""
    for variant, values in scores.items():
        for seed in range(1, seeds[variant] + 1):
            finished(root / variant / f"seed-{seed}", variant, seed, {"exact_match": values[seed - 1]})


def facts(root, plan=PLAN):
    comparison = compare(collect([root]), "r", root, "exact_match", "base", Question(plan))
    return Facts(comparison, create_registry())


class Spec:
    def __init__(self, variant, seed):
        self.variant, self.seed, self.name = variant, seed, f"{variant}/seed-{seed}"


def trained_by_stages(root):
    """What a sweep trains, look by look: variant → its last seed."""
    cells = [Cell(Spec(variant, seed), root, [], {}) for seed in range(1, 9) for variant in SCORES]
    counts = dict.fromkeys(SCORES, 0)

    def undecided(done):
        write(root, SCORES, counts)
        comparison = compare(collect([root]), "r", root, "exact_match", "base", Question(PLAN))
        names = {row.variant for row in comparison.rows if row.difference and not row.difference.is_settled}
        return names | {"base"} if names else set()

    for stage in stages(cells, PLAN, undecided):
        for cell in stage:
            counts[cell.spec.variant] = max(counts[cell.spec.variant], cell.spec.seed)
    write(root, SCORES, counts)
    return counts


def test_the_looks_are_those_of_the_sweep(tmp_path):
    counts = trained_by_stages(tmp_path)
    assert counts["far"] == 3 < counts["near"]
    found = decisions_of(facts(tmp_path))
    last = {item.variant: (item.seeds, item.is_settled) for item in found}
    for variant in ("far", "near", "late"):
        assert last[variant][0] == counts[variant], variant
        assert last[variant][1] or counts[variant] == 8
    sizes = [item.seeds for item in found if item.variant == "near"]
    assert sizes == [3, 5, 8][: len(sizes)]
    settled = {item.variant: item.decided for item in found if item.is_settled}
    assert settled["far"] == "settled: worse"
    assert next(item for item in found if item.variant == "near").decided == "open; gets more"


def test_seeds_of_a_settled_variant_that_somebody_trained_later_change_nothing(tmp_path):
    before = trained_by_stages(tmp_path / "one")
    trained_by_stages(tmp_path / "two")
    write(tmp_path / "two", SCORES, {**before, "far": 8})
    one, two = (decisions_of(facts(tmp_path / name)) for name in ("one", "two"))
    assert one == two


def test_a_look_that_is_yet_to_come_is_not_told(tmp_path):
    write(tmp_path, SCORES, {"base": 5, "far": 3, "near": 4, "late": 5})
    assert {item.seeds for item in decisions_of(facts(tmp_path))} == {3}


def test_listed_seeds_and_another_metric_have_no_looks(tmp_path):
    write(tmp_path, SCORES, dict.fromkeys(SCORES, 3))
    assert decisions_of(facts(tmp_path, None)) == [] and not Seeds().applies(facts(tmp_path, None))
    (tmp_path / "base/seed-1/recipe.yaml").write_text("name: r\nevaluate: {best: loss}\n", "utf-8")
    assert decisions_of(facts(tmp_path)) == []


def test_the_section_says_how_many_seeds_each_got(tmp_path):
    counts = trained_by_stages(tmp_path)
    of = facts(tmp_path)
    (line,) = Seeds().text(of)
    assert f"“far” {counts['far']} seeds (settled: worse)" in line
    rows = Seeds().data(of)["looks"]
    assert rows[0]["seeds"] == 3 and {"p_adjusted", "decided", "verdict"} <= set(rows[0])
    html = Seeds().html(of)
    assert "looks after 3, 5 and 8 seeds" in html
