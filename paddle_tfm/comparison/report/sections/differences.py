"""The differences to the baseline with their intervals, as a forest plot."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from paddle_tfm import units
from paddle_tfm.comparison.report.figures.forest_plot import Bar, ForestPlot
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.comparison.verdict import interval, mean_difference, verdict_text
from paddle_tfm.pages.axis import fit
from paddle_tfm.protocols import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Differences(Section):
    """Each variant's difference to the baseline, paired by seed, with its interval."""

    heading = "Differences"
    place = 120

    def applies(self, facts: Facts) -> bool:
        """Whether any variant has an interval."""
        return any(bar.low <= bar.high for bar in _bars(facts))

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """The forest plot."""
        return {"differences": _plot(facts).figure()}

    def html(self, facts: Facts) -> str:
        """The forest plot."""
        return _plot(facts).html()


def _bars(facts: Facts) -> list[Bar]:
    """A row for each variant that has a difference, in the order of the table."""
    bars = []
    for row in facts.comparison.rows:
        difference = row.difference
        if difference is None or difference.mean is None:
            continue
        low, high = (math.nan if end is None else end for end in (difference.low, difference.high))
        ends = f" ({interval(facts.comparison, difference)})" if low <= high else ""
        text = f"{mean_difference(facts.comparison, difference)}{ends}, {verdict_text(facts.comparison, difference)}"
        bars.append(Bar(facts.numbers[row.variant], row.variant, difference.mean, low, high, text))
    return bars


def _plot(facts: Facts) -> ForestPlot:
    comparison, bars = facts.comparison, _bars(facts)
    unit = comparison.unit(comparison.metric)
    side = "right" if comparison.higher_is_better else "left"
    note = f"difference to {comparison.baseline} with its {CONFIDENCE:.0%} interval; {side} of 0 is better"
    title = f"{comparison.split} {units.metric_name(comparison.metric)}{', points' if unit else ''}"
    axis = fit([0.0, *(value for bar in bars for value in (bar.mean, bar.low, bar.high))])
    return ForestPlot(bars, axis, title, note, partial(units.signed_tick, unit=unit))
