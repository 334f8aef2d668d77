"""How differences to the baseline change with compute, over the sizes of a ladder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison import ladder as words
from paddle_tfm.comparison.ladder import Ladder, Trend, ladder
from paddle_tfm.comparison.report.figures.charts import LineChart, key_of
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.statistics import CONFIDENCE, Verdict
from paddle_tfm.comparison.verdict import interval, mean_difference, verdict_text
from paddle_tfm.pages.axis import Axis, fit
from paddle_tfm.pages.chart import Point, Series
from paddle_tfm.protocols import Section
from paddle_tfm.recipe.ladder import at
from paddle_tfm.tabular import Column, Table, column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_POINTS = 33  # of a line with its band, which is curved
APART = 0.02  # between the variants of one size, of the axis: intervals that do not hide each other

LINE = ("slope", "low", "high", "degrees_of_freedom", "crossing", "crossing_low", "crossing_high", "misfit")


class Ladders(Section):
    """Each variant's difference to the baseline by training compute: every size, and the line through them."""

    heading = "By size"
    place = 130

    def applies(self, facts: Facts) -> bool:
        """Whether runs are of several sizes."""
        return facts.once(_ladder_of) is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each variant at each size, and one for each line."""
        here = _ladder(facts)
        return {"sizes": _sizes(facts, here), "lines": _lines(facts, here)}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """Differences by compute."""
        return {"differences-by-compute": _chart(facts, _ladder(facts)).figure()}

    def html(self, facts: Facts) -> str:
        """The sentences, the chart, both tables, and how they came about."""
        here, sentences = _ladder(facts), "".join(f"<p>{escape(line)}</p>" for line in self.text(facts))
        tables = "".join(table.html() for table in self.tables(facts).values())
        keys = key_of({name: _number(facts, name) for name in (here.baseline, *(each.variant for each in here.trends))})
        side = "above" if facts.comparison.higher_is_better else "below"
        note = f'<p class="note">{side.capitalize()} 0 is better. {escape(words.METHOD)}</p>'
        return f"{sentences}{keys}{_chart(facts, here).html()}{tables}{note}"

    def text(self, facts: Facts) -> list[str]:
        """A line for each variant, and whether smaller sizes foretell the largest."""
        here, comparison = _ladder(facts), facts.comparison
        trends = [words.trend(comparison, each) for each in here.trends]
        return [f"By size, {words.tested(here)}:", *trends, words.foretelling(comparison, here)]

    def data(self, facts: Facts) -> dict[str, Any]:
        """Sizes, differences and lines as numbers."""
        here = _ladder(facts)
        held_out = None if here.held_out is None else {**vars(here.held_out), "better": here.held_out.line_is_better}
        tables = {name: table.records() for name, table in self.tables(facts).items()}
        return {"baseline": here.baseline, **tables, "held_out": held_out, "not_held_out": here.not_held_out}


def _ladder_of(facts: Facts) -> Ladder | None:
    return ladder(facts.comparison)


def _ladder(facts: Facts) -> Ladder:
    if (here := facts.once(_ladder_of)) is None:
        raise ValueError("these runs are of no ladder, or of one size")
    return here


def _number(facts: Facts, name: str) -> int:
    """The colour of a variant: that which it has at the largest size."""
    size = facts.comparison.runs[0].results["size"]
    return facts.numbers[at(name, size)]


def _verdicts(here: Ladder, trend: Trend) -> Iterator[tuple[int, Verdict]]:
    """The place of each size, and what it says of a variant."""
    for place, rung in enumerate(here.rungs):
        for row in rung.comparison.rows:
            if row.variant == at(trend.variant, rung.size) and row.difference is not None:
                yield place, row.difference


def _sizes(facts: Facts, here: Ladder) -> Table:
    comparison, rows = facts.comparison, []
    for place, rung in enumerate(here.rungs):
        for trend in here.trends:
            verdict = dict(_verdicts(here, trend)).get(place)
            numbers = {"matrix_parameters": rung.matrix_parameters, "tokens": rung.tokens, "flops": rung.compute}
            row: dict[str, Any] = {"size": rung.size, **numbers, "variant": trend.variant, "pairs": 0}
            row |= {"difference": None, "low": None, "high": None, "verdict": "no pair", "shown": "–", "ends": "–"}
            if verdict is not None:
                row |= {
                    "pairs": verdict.looked_at,
                    "difference": verdict.mean,
                    "low": verdict.low,
                    "high": verdict.high,
                }
                row |= {"shown": mean_difference(comparison, verdict), "ends": interval(comparison, verdict)}
                row["verdict"] = verdict_text(comparison, verdict)
            rows.append(row)
    columns = [
        column("size"),
        column("matrix_parameters", "matrix parameters", "{:,}".format, right=True),
        column("tokens", "tokens a run", "{:,.0f}".format, right=True),
        column("flops", "operations a run", words.operations, right=True),
        column("variant"),
        column("pairs", right=True),
        _shown("difference", ("difference",), "shown"),
        _shown(f"{CONFIDENCE:.0%} interval", ("low", "high"), "ends"),
        column("verdict"),
    ]
    return Table(columns, rows, f"Differences to {here.baseline} at each size; the first columns are the baseline's")


def _lines(facts: Facts, here: Ladder) -> Table:
    rows: list[dict[str, Any]] = []
    for trend in here.trends:
        line = trend.line
        row: dict[str, Any] = {"variant": trend.variant, "sizes": len(trend.differences), "reason": trend.reason}
        row["pairs"] = sum(map(len, trend.differences.values()))
        if line is None:
            row |= {**dict.fromkeys(LINE), "place": "", "shown": "–", "where": "–"}
        else:
            low, high = line.crossing_interval or (None, None)
            row |= {"slope": line.slope, "low": line.low, "high": line.high, "crossing": line.crossing}
            row |= {"degrees_of_freedom": line.degrees_of_freedom, "place": line.place, "misfit": line.misfit}
            row |= {"crossing_low": low, "crossing_high": high, "shown": words.rise(facts.comparison, line)}
            row["where"] = "–" if line.crossing is None else f"{words.operations(line.crossing)} ({words.ends(line)})"
        rows.append(row)
    columns = [
        column("variant"),
        column("sizes", right=True),
        column("pairs", right=True),
        column("degrees_of_freedom", "degrees of freedom", _or_dash, right=True),
        _shown("slope", ("slope", "low", "high"), "shown"),
        _shown("0 at", ("crossing", "crossing_low", "crossing_high"), "where"),
        column("place", "which is", lambda value: "" if value == "none" else value),
        column("misfit", "lack of fit, p", lambda value: "–" if value is None else f"{value:.2g}", right=True),
        column("reason", "remark"),
    ]
    return Table(columns, rows, "The line through the differences of each variant, by log₂ of compute")


def _shown(heading: str, keys: tuple[str, ...], shown: str) -> Column:
    """A column that shows one text of a row and holds several of its numbers."""
    return Column(heading, lambda row: row[shown], lambda row: {name: row[name] for name in keys}, right=True)


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)


def _chart(facts: Facts, here: Ladder) -> LineChart:
    """Dots with intervals for each size, the line with its band, and the baseline at 0."""
    comparison = facts.comparison
    unit, computes = comparison.unit(comparison.metric), [rung.compute for rung in here.rungs]
    x = Axis(computes[0] / 1.5, computes[-1] * 1.5, log=True)
    flat = [Point(end, 0.0, 0.0, 0.0) for end in (x.low, x.high)]
    series = [Series(_number(facts, here.baseline), here.baseline, flat, marked=False)]
    for place, trend in enumerate(here.trends):
        shift = (x.high / x.low) ** (APART * (place - (len(here.trends) - 1) / 2))
        series += _series(_number(facts, trend.variant), here, trend, shift)
    values = [value for item in series for point in item.points for value in (point.low, point.high)]
    y = fit([0.0, *values])
    title = f"{comparison.split} {units.metric_name(comparison.metric)}{', points' if unit else ''}"
    return LineChart(
        series, x, y, "floating-point operations of training (6 · N · D)",
        f"{title}: difference to {here.baseline}",
        "; ".join(words.trend(comparison, each) for each in here.trends),
        partial(units.signed_tick, unit=unit),
    )  # fmt: skip


def _series(number: int, here: Ladder, trend: Trend, shift: float) -> Iterator[Series]:
    for place, verdict in _verdicts(here, trend):
        if verdict.mean is not None:
            ends = (verdict.mean if end is None else end for end in (verdict.low, verdict.high))
            yield Series(number, trend.variant, [Point(here.rungs[place].compute * shift, verdict.mean, *ends)])
    if trend.line is not None:
        at_compute = np.geomspace(*trend.line.tested, LINE_POINTS).tolist()
        at_compute[-1] = trend.line.tested[1]  # not a last bit beyond
        points = [Point(each, trend.line.at(each), *trend.line.band(each)) for each in at_compute]
        yield Series(number, trend.variant, points, marked=False)
