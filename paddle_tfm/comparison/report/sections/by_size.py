"""How differences to the baseline change with compute, over the sizes of a ladder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison import ladder as words
from paddle_tfm.comparison.columns import difference_and_interval
from paddle_tfm.comparison.ladder import Ladder, Trend, ladder
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.figures.line_chart import LineChart, Series
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.curves import Point
from paddle_tfm.comparison.statistics import Verdict
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.comparison.verdict import verdict_text
from paddle_tfm.language import _
from paddle_tfm.pages.axis import Axis
from paddle_tfm.recipe.sections.ladder import at
from paddle_tfm.tabular import Column, Table, column

LINE_POINTS = 33  # of a line with its band, which is curved
APART = 0.02  # between the variants of one size, of the axis: intervals that do not hide each other
METHOD = (
    "Compute is 6 · N · D floating-point operations of a run of the baseline (arXiv:2001.08361), with N "
    "parameters in the matrices of encoder and decoder and D target tokens of training. The line is least squares"
    " through all differences paired by seed: d = a + b · log₂(compute) + error, with independent errors of one "
    "variance. Its intervals are Student’s t with two degrees of freedom fewer than pairs, and hold for all "
    "variants at once (Bonferroni). The interval of a crossing is Fieller’s. Nothing is predicted beyond 4 times "
    "the tested compute. Each size is compared by itself."
)
LINE = ("degrees_of_freedom", "slope", "low", "high", "crossing", "place", "misfit")  # of each, in JSON


class Ladders(ChartedSection):
    """Each variant's difference to the baseline by training compute: every size, and the line through them."""

    heading = "By size"
    summary = "each difference at each size, and the line through them"
    place = 130

    def applies(self, facts: Facts) -> bool:
        return facts.once(_ladder_of) is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each variant at each size; of the lines there are sentences."""
        return {"sizes": _sizes(facts.comparison, _ladder(facts))}

    def charts(self, facts: Facts) -> dict[str, LineChart]:
        return {"differences-by-compute": _chart(facts, _ladder(facts))}

    def notes(self, facts: Facts) -> list[str]:
        side = _("Above 0 is better.") if facts.comparison.higher_is_better else _("Below 0 is better.")
        return [*self.text(facts), f"{side} {_(METHOD)}"]

    def text(self, facts: Facts) -> list[str]:
        here, comparison = _ladder(facts), facts.comparison
        trends = [words.trend(comparison, each) for each in here.trends]
        return [_("By size, {tested}:").format(tested=words.tested(here)), *trends]

    def data(self, facts: Facts) -> dict[str, Any]:
        here = _ladder(facts)
        sizes, lines = self.tables(facts)["sizes"].records(), list(map(_line, here.trends))
        return {"baseline": here.baseline, "sizes": sizes, "lines": lines}


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


def _sizes(comparison: Comparison, here: Ladder) -> Table:
    rows = [
        {
            "size": rung.size,
            "matrix_parameters": rung.matrix_parameters,
            "tokens": rung.tokens,
            "flops": rung.compute,
            "variant": trend.variant,
            "verdict": dict(_verdicts(here, trend)).get(place),
        }
        for place, rung in enumerate(here.rungs)
        for trend in here.trends
    ]

    def verdict(row: Mapping[str, Any]) -> str:
        difference = verdict_of(row)
        return _("no pair") if difference is None else verdict_text(comparison, difference)

    def verdict_of(row: Mapping[str, Any]) -> Verdict | None:
        return row["verdict"]

    columns: list[Column] = [
        column("size"),
        column("matrix_parameters", "matrix parameters", "{:,}".format, right=True),
        column("tokens", "tokens a run", "{:,.0f}".format, right=True),
        column("flops", "operations a run", words.operations, right=True),
        column("variant"),
        column("pairs", right=True, of=lambda row: getattr(verdict_of(row), "looked_at", 0)),
        *difference_and_interval(comparison, rows, verdict_of, none="–", numbers=("low", "high")),
        column("verdict", of=verdict),
    ]
    title = _("Differences to {baseline} at each size; the first columns are the baseline's")
    return Table(columns, rows, title.format(baseline=here.baseline))


def _line(trend: Trend) -> dict[str, Any]:
    """The line of a variant as numbers."""
    ends = getattr(trend.line, "crossing_interval", None) or (None, None)
    return {
        "variant": trend.variant,
        "sizes": len(trend.differences),
        "pairs": sum(map(len, trend.differences.values())),
        **{name: getattr(trend.line, name, None) for name in LINE},
        **dict(zip(("crossing_low", "crossing_high"), ends)),
        "reason": trend.reason,
    }


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
    title = (
        _("{split} {metric}, points: difference to {baseline}")
        if unit
        else _("{split} {metric}: difference to {baseline}")
    )
    title = title.format(split=_(comparison.split), metric=units.metric_name(comparison.metric), baseline=here.baseline)
    titles = _("floating-point operations of training (6 · N · D)"), title
    return LineChart.fitted(series, titles, partial(units.signed_tick, unit=unit), x=x)


def _series(number: int, here: Ladder, trend: Trend, shift: float) -> Iterator[Series]:
    for place, verdict in _verdicts(here, trend):
        if verdict.mean is not None:
            ends = (verdict.mean if end is None else end for end in (verdict.low, verdict.high))
            yield Series(number, trend.variant, [Point(here.rungs[place].compute * shift, verdict.mean, *ends)])
    if trend.line is not None:
        at_compute = np.geomspace(*trend.line.tested, LINE_POINTS).tolist()
        points = [Point(each, trend.line.at(each), *trend.line.band(each)) for each in at_compute]
        yield Series(number, trend.variant, points, marked=False)
