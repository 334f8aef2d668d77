"""What runs of several sizes say."""

import json
import re
from statistics import fmean

import pytest
from finished_runs import finished

from paddle_tfm import create_registry
from paddle_tfm.comparison.ladder import ladder
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.by_size import Ladders
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.errors import UserError

SIZES = {"m": 4000, "xs": 500, "l": 12000, "s": 1500}  # in no order
TOKENS = 1e6
BASE = {"xs": (0.50, 0.52, 0.48), "s": (0.6, 0.63, 0.61), "m": (0.7, 0.72, 0.71), "l": (0.8, 0.79, 0.81)}
GAIN = {"xs": (-0.08, -0.1, -0.07), "s": (-0.02, -0.03, -0.05), "m": (0.03, 0.04, 0.02), "l": (0.09, 0.07, 0.08)}


def run(root, variant, size, seed, value, **more):
    folder = root / f"{variant.replace('/', '_')}@{size}" / f"seed-{seed}"
    sizes = {
        "size": size,
        "parameters": 9 * SIZES[size],
        "matrix_parameters": SIZES[size],
        "tokens": TOKENS,
        "data": "d",
    }
    finished(folder, f"{variant}@{size}", seed, {"exact_match": value}, **(sizes | more))


def climb(root, gain=GAIN, name="b_% <u>"):
    for size, values in gain.items():
        for seed, value in enumerate(values, 1):
            base = BASE[size][seed - 1]
            if not (root / f"a@{size}" / f"seed-{seed}").exists():
                run(root, "a", size, seed, base)
            run(root, name, size, seed, base + value)


def compared(root, baseline="a"):
    return compare(collect([root]), "r", root, "exact_match", baseline)


def test_the_table_is_of_the_largest_size_and_the_section_of_all(tmp_path):
    climb(tmp_path)
    comparison = compared(tmp_path)
    assert [row.variant for row in comparison.rows] == ["b_% <u>@l", "a@l"] and comparison.baseline == "a@l"
    assert comparison.rows[0].difference.mean == pytest.approx(0.08)
    assert len(comparison.runs) == 6 and len(comparison.smaller) == 18 and len(comparison.data()["runs"]) == 24
    here = ladder(comparison)
    assert [(rung.size, rung.compute) for rung in here.rungs] == [
        (size, 6 * SIZES[size] * TOKENS) for size in ("xs", "s", "m", "l")
    ]
    for rung in here.rungs:
        (difference,) = (row.difference for row in rung.comparison.rows if row.difference)
        assert (difference.mean, difference.pairs) == (pytest.approx(fmean(GAIN[rung.size])), 3)


def test_what_is_said_is_what_was_tested(tmp_path):
    climb(tmp_path)
    steady = {size: [0.01, -0.02, 0.015] for size in GAIN}
    climb(tmp_path, steady, "c")
    facts = Facts(compared(tmp_path), create_registry())
    first, *trends = Ladders().text(facts)
    assert first == "By size, tested from size xs to l, 3.0e9 to 7.2e10 floating-point operations a run:"
    rising, level = sorted(trends)
    assert rising.startswith("“b_% <u>”: gains on the baseline, +3.") and "inside what was tested (95%: " in rising
    assert "no trend can be told" in level and "gains" not in level
    data = Ladders().data(facts)
    json.dumps(data, allow_nan=False)
    assert [row["size"] for row in data["sizes"]] == ["xs", "xs", "s", "s", "m", "m", "l", "l"]
    html = Ladders().html(facts)
    assert "<u>" not in html and html.count('class="band"') == 2
    assert len(re.findall('class="interval"', html)) == 8
    figure = Ladders().figures(facts)["differences-by-compute"]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(names) == ["a", "b_% <u>", "c"]


def test_two_sizes_are_a_line(tmp_path):
    climb(tmp_path, {size: GAIN[size] for size in ("xs", "l")})
    assert ladder(compared(tmp_path)).trends[0].line.degrees_of_freedom == 4


def test_a_run_that_diverged_leaves_no_line(tmp_path):
    climb(tmp_path)
    climb(tmp_path, {size: values[:2] for size, values in GAIN.items()}, "c")
    run(tmp_path, "c", "s", 3, 0.0, diverged="the loss was no number", tokens=10, test={}, valid={})
    facts = Facts(compared(tmp_path), create_registry())
    assert "“c”: in 1 pair a run diverged, so there is no line." in Ladders().text(facts)
    assert Ladders().html(facts) and [
        row["slope"] for row in Ladders().data(facts)["lines"] if row["variant"] == "c"
    ] == [None]


def test_a_report_of_one_size_has_no_such_section(tmp_path):
    climb(tmp_path)
    one = compare(collect([tmp_path / "a@m", tmp_path / "b_% <u>@m"]), "r", tmp_path, "exact_match", "a")
    assert one.baseline == "a@m" and not one.smaller and ladder(one) is None
    registry = create_registry()
    assert "By size" not in Report(one, registry, print).page()
    assert "By size" in Report(compared(tmp_path), registry, print).page()
    with pytest.raises(UserError, match=r"unknown variant 'd'.* Known: a@l, b_% <u>@l"):
        compared(tmp_path, "d")
