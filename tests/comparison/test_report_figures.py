"""Every figure of the report: whole, its ticks told apart, and each variant in its one colour, as everywhere."""

from __future__ import annotations

import json
import math
import re
import warnings
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from test_report import EVIL, LOST, finish, series, table
from whole_figures import cut_off, repeated

from paddle_tfm import create_registry, plotting
from paddle_tfm.colours import COLOURS, colour
from paddle_tfm.comparison.columns import table as text_table
from paddle_tfm.comparison.report.figures.line_chart import LineChart, Series
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.scores import overview
from paddle_tfm.comparison.runs.curves import Point
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.pages.axis import fit, short
from paddle_tfm.pages.style import DARK, LIGHT, css
from paddle_tfm.testing.trials.comparison import trials
from paddle_tfm.units import signed_tick, tick

LONG = [
    f"{i}: position=rotary,norm=rms,placement=post" if i % 2 else f"{i} 旋转位置编码与均方根归一化的组合以及更多的说明"
    for i in range(10)
]


@pytest.fixture(scope="module")
def registry():
    return create_registry()


# ---------------------------------------------------------------------------------------------------------- the layout


@pytest.mark.reliability
def test_no_figure_of_any_section_is_cut_off_or_repeats_a_tick(registry):
    drawn = 0
    with trials(registry) as comparisons:
        for trial in comparisons:
            for name in registry.names("section"):
                section = registry.resolve("section", name, name).cls()
                if section.slow or not section.applies(trial.facts):
                    continue
                for key, figure in section.figures(trial.facts).items():
                    assert not cut_off(figure), (trial.what, name, key)
                    assert not repeated(figure), (trial.what, name, key, repeated(figure))
                    drawn += 1
    assert drawn > 10


@pytest.mark.parametrize("count", [2, 10])
def test_long_names_and_titles_fit_into_charts_for_a_paper(count):
    title = "validation token error rate of a further test, a mean over all its texts (lower is better)"
    lines = [Series(i, LONG[i], [Point(x, i + x, i, i + 2 * x) for x in (0.0, 1.0)]) for i in range(count)]
    x, y = fit([0.0, 1.0]), fit([0.0, 12.0])
    assert not cut_off(LineChart(lines, x, y, "steps of all trials of a variant", title, "", short).figure())


@pytest.mark.parametrize(
    ("values", "name", "some"),
    [
        ((285_100, 286_050), short, {"285.2k", "285.4k", "286k"}),
        ((1e9, 1e9 + 1000), short, {"1G", "1.0000002G", "1.000001G"}),
        ((9000, 21_000), short, {"10k", "12.5k", "20k"}),
        ((-0.0051, 0.005), signed_tick, {"−0.0025", "0", "+0.005"}),
        ((0.99999901, 0.99999984), partial(tick, unit="%"), {"99.99992%", "99.99998%"}),
        ((0, 300), tick, {"0", "100", "300"}),
    ],
)
def test_ticks_are_written_exactly(values, name, some):
    axis = fit(values)
    names = axis.names(name)
    assert len(set(names)) == len(names) == len(axis.ticks())
    assert some <= set(names)


# --------------------------------------------------------------------------------------------------------- the colours


def luminance(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_colours_are_readable_on_every_page():
    papers = [re.search(f"--{name}: (#......)", scheme)[1] for scheme in (LIGHT, DARK) for name in ("paper", "card")]
    for paper, each in product([*papers, "#1d1d1f"], COLOURS):  # the last is VisualDL's, where it is dark
        lower, higher = sorted([luminance(paper), luminance(each)])
        assert (higher + 0.05) / (lower + 0.05) >= 3, (paper, each)


def test_a_variant_has_one_colour_everywhere(tmp_path, registry):
    """That of its place in the recipe: whatever the order of folders, whichever are compared, against which of them."""
    names = ["mid", "a", "z", "b"]
    for place, name in enumerate(names):
        for seed, value in enumerate((0.1, 0.2, 0.35), 1):
            finish(tmp_path / "made", name, seed, value + place / 10).parent.rename(tmp_path / "made" / "seeds")
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / "made" / "seeds" / f"seed-{seed}").rename(tmp_path / name / f"seed-{seed}")
            (tmp_path / "made" / "seeds").rmdir()
    (tmp_path / "made").rmdir()
    runs = [f"{name}/seed-{seed}" for seed in (1, 2, 3) for name in names]
    tuning = ["tuning/z/trial-1", "tuning/mid/trial-1"]
    (tmp_path / "command.json").write_text(json.dumps({"command": [], "runs": [*tuning, *runs]}), "utf-8")
    for shown, baseline in ((names, "mid"), (names, "z"), (["z", "a"], "z")):
        comparison = compare(collect([tmp_path / name for name in shown]), "r", tmp_path, "exact_match", baseline)
        facts = Facts(comparison, registry)
        for name in shown:
            mine = COLOURS[names.index(name)]
            (row,) = [row for row in comparison.rows if row.variant == name]
            assert text_table(comparison).columns[0].style(row) == mine
            assert facts.numbers[name] == names.index(name)  # of every section
            curves, values = overview(facts).axes
            assert mine in {line.get_color() for line in curves.lines}
            place = comparison.rows.index(row)
            drawn = [line for line in values.lines if round(line.get_ydata()[0]) == place and line.get_marker() != "--"]
            assert {line.get_color() for line in drawn if line.get_linestyle() != "--"} == {mine}
            style = registry.resolve("section", "results", "results").cls().html(facts)
            assert f'<i class="swatch c{names.index(name)} dash0"></i><bdi>{name}</bdi>' in style
    assert f".c2 {{ --c: {COLOURS[2]}; }}" in css()
    assert plotting.line_style(10) != plotting.line_style(2) and plotting.line_style(10).colour == colour(2)


def test_variants_of_several_sweeps_have_a_colour_each(tmp_path):
    for name in ("one", "two"):
        series(tmp_path / name, "rms", [0.5], recipe=name)
        series(tmp_path / name, "layer", [0.5], recipe=name)
    assert sorted(table(tmp_path).numbers.values()) == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------------------------- the overview


def drawn(comparison, registry):
    """The overview, and the axes of its curves and of its values."""
    figure = overview(Facts(comparison, registry))
    return figure, *figure.axes


def test_the_overview_shows_mean_curves_seeds_means_and_the_interval_of_the_verdict(tmp_path, registry):
    finish(tmp_path, "base", 1, 0.5, curve=(0.25, 0.5))
    finish(tmp_path, "base", 2, 0.75, curve=(0.75, 0.75, 0.875))  # step 300 is not in both: not in the mean
    series(tmp_path, "other", [0.875, 0.9375], curve=(0.125, 1.0))
    comparison = table(tmp_path, baseline="base")
    figure, curves, values = drawn(comparison, registry)
    lines = [line.get_xydata().tolist() for line in curves.lines]
    assert sorted(lines) == [[[100, 0.125], [200, 1.0]], [[100, 0.5], [200, 0.625]]]
    seeds = [sorted(line.get_xdata()) for line in values.lines if line.get_marker() == "."]
    assert seeds == [[0.875, 0.9375], [0.5, 0.75]]
    means = [line.get_xdata()[0] for line in values.lines if line.get_marker() in plotting.MARKERS]
    assert means == [0.90625, 0.625]
    (interval,) = [line for line in values.lines if line.get_marker() == "|"]
    difference = comparison.rows[0].difference
    ends = [0.625 + difference.low, 0.625 + difference.high]
    assert interval.get_xdata() == pytest.approx([max(0, ends[0]), min(1, ends[1])])
    (base,) = [line for line in values.lines if line.get_linestyle() == "--"]
    assert list(base.get_xdata()) == [0.625, 0.625]
    assert [label.get_text() for label in values.get_yticklabels()] == ["other", "base\n(baseline)"]
    assert not cut_off(figure)
    titles = [part.get_suptitle().replace("\n", " ") for part in figure.subfigs]
    assert titles[0] == "During training: validation exact match (higher is better)"
    assert titles[1].startswith("At the end: test exact match, higher is better →") and "95% interval" in titles[1]


@pytest.mark.parametrize(
    ("metric", "low", "scale"),
    [
        ("perplexity", 1.5, "log"),
        ("perplexity", 2.5, "linear"),
        ("exact_match", 0.01, "linear"),
        ("bleu", 0.5, "linear"),
    ],
)
def test_only_curves_of_a_wide_range_of_a_quantity_are_logarithmic(tmp_path, registry, metric, low, scale):
    high = 1.0 if metric == "exact_match" else 20.0
    series(tmp_path, "a", [low, high], metric=metric, curve=(high, low))
    _, curves, _ = drawn(table(tmp_path, metric), registry)
    assert curves.get_yscale() == scale


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_no_axis_of_a_share_names_more_than_0_to_100_percent(tmp_path, registry, value):
    series(tmp_path, "a", [value, value], curve=(value, value))
    _, curves, values = drawn(table(tmp_path), registry)
    for axis in (curves.yaxis, values.xaxis):
        low, high = axis.get_view_interval()
        assert low < value < high  # the dot is whole
        assert all(0 <= tick <= 1 for tick in axis.get_majorticklocs() if low <= tick <= high)


def test_a_diverged_run_bends_no_mean_and_is_said(tmp_path, registry):
    finish(tmp_path, "a", 1, 0.5, curve=(0.25, 0.5, 0.75))
    finish(tmp_path, "a", 2, 0.5, curve=(0.0, math.nan), diverged=LOST)
    _, curves, values = drawn(table(tmp_path), registry)
    assert curves.lines[0].get_xydata().tolist() == [[100, 0.25], [200, 0.5], [300, 0.75]]
    assert [label.get_text() for label in values.get_yticklabels()] == ["a\n(1 of 2 diverged)"]


def test_empty_curves_and_diverged_variants_are_said_in_words(tmp_path, registry):
    series(tmp_path, "a", [0.5], diverged=LOST, curve=())
    _, curves, values = drawn(table(tmp_path), registry)
    assert [text.get_text() for text in curves.texts] == ["no evaluation was logged"]
    assert [text.get_text() for text in values.texts] == ["every run diverged"]


def test_names_of_any_kind_are_drawn_without_a_warning(tmp_path, registry, caplog):
    for name in (EVIL, "_hidden", "$x$", "旋转位置", "a\nb", "x" * 80, "\ue123"):
        series(tmp_path, name, [0.5, 0.75])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure, _, values = drawn(table(tmp_path), registry)
        svg = plotting.image(figure, "svg").decode("utf-8")
        plotting.image(figure, "png")
    assert not caplog.records
    shown = [label.get_text().removesuffix("\n(baseline)") for label in values.get_yticklabels()]
    assert {"_hidden", r"\$x\$", "旋转位置", "a b", "\n".join(["x" * 24, "x" * 24, "x" * 23 + "…"])} <= set(shown)
    assert ">$x$<" in svg and ">旋转位置<" in svg


def test_sixteen_variants_look_different_each_and_the_figure_grows(tmp_path, registry):
    for place in range(16):
        series(tmp_path, f"{place} of the 旋转位置编码, which has_a_rather_long_name_of_letters", [0.5 + place / 100])
    figure, _, values = drawn(table(tmp_path), registry)
    looks = [plotting.line_style(place) for place in range(32)]
    assert len({(look.colour, str(look.style)) for look in looks}) == 32
    assert not cut_off(figure)
    boxes = sorted((label.get_window_extent() for label in values.get_yticklabels()), key=lambda box: box.y0)
    assert len(boxes) == 16 and all(below.y1 <= above.y0 for below, above in pairwise(boxes))
