"""Learning curves: the deciding metric and the loss of training, on steps, tokens or seconds."""

from __future__ import annotations

from functools import partial
from html import escape

from paddle_tfm import units
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.curves import AXES, mean_points
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import Series, colour, line_chart
from paddle_tfm.protocols import Section


class Curves(Section):
    """Learning curves of the deciding metric and of the loss, on steps, tokens or seconds."""

    heading = "Learning curves"
    place = 300

    def html(self, facts: Facts) -> str:
        """Two figures for each of the three axes, of which one is shown; a checkbox for each variant."""
        return _html(facts)


def _html(facts: Facts) -> str:
    metric = facts.comparison.learned
    panels = []
    for axis in AXES:
        drawn = [_panel(facts, name, axis) for name in (metric, None)]
        panels.append((axis, [figure for figure in drawn if figure]))
    panels = [(axis, drawn) for axis, drawn in panels if drawn]
    if not panels:
        return "<p>No evaluation was logged.</p>"
    radios = "".join(
        f'<label><input type="radio" name="x" id="x-{axis}"{" checked" if i == 0 else ""}>{axis}</label>'
        for i, (axis, _) in enumerate(panels)
    )
    figures = "".join(f'<div class="by {axis} charts">{"".join(drawn)}</div>' for axis, drawn in panels)
    seeds = max(len(row.seeds) for row in facts.comparison.rows)
    band = " The band is the range of the seeds, the line their mean." if seeds > 1 else ""
    note = f"Colours are those of the scores above.{band} The loss of training is a mean over stretches of steps."
    return (
        f'<div class="curves"><fieldset class="against-what"><legend>against</legend>{radios}</fieldset>'
        f'{_legend(facts)}{figures}<p class="note">{escape(note)}</p></div>'
    )


def _legend(facts: Facts) -> str:
    if len(facts.comparison.rows) == 1:
        return ""
    boxes = "".join(
        f'<label class="{colour(facts.numbers[row.variant])}"><input type="checkbox" id="show-'
        f'{facts.numbers[row.variant]}" checked><i class="swatch"></i><bdi>{escape(row.variant)}</bdi></label>'
        for row in facts.comparison.rows
    )
    return f"<fieldset><legend>show</legend>{boxes}</fieldset>"


def _panel(facts: Facts, metric: str | None, axis: str) -> str:
    comparison = facts.comparison
    series = []
    for row in reversed(comparison.rows):  # the best on top
        points = mean_points(facts.groups[row.variant], facts.curves[row.variant], metric, axis)
        if points:
            series.append(Series(facts.numbers[row.variant], row.variant, points))
    if not series:
        return ""
    unit = comparison.unit(metric) if metric else ""
    higher = comparison.higher_is_better if metric else False
    ends = [value for item in series for point in item.points for value in (point.low, point.high)]
    y = fit(ends, units.bounds(unit, higher), log=not unit and not higher)
    x = fit([0.0, *(point.x for item in series for point in item.points)])
    name = partial(units.tick, unit=unit)
    what = f"validation {units.metric_name(metric)}" if metric else "loss of training"
    better = "higher is better" if higher else "lower is better"
    scale = ", logarithmic" if y.log else ""
    last = "; ".join(f"{item.name} ends at {name(item.points[-1].y)}" for item in reversed(series))
    return line_chart(series, x, y, (f"{what} ({better}{scale})", AXES[axis], f"{what} by {AXES[axis]}: {last}"), name)
