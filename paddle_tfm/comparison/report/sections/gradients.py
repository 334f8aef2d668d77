"""The norm of the gradient during training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_tfm.comparison.report.figures.charts import LineChart, key
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.curves import AXES, mean_points
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import Series, short
from paddle_tfm.protocols import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRADIENT = "gradient_norm"
NOTE = (
    "The norm of all gradients together before clipping, a mean over stretches of steps; the band is the range of the "
    "seeds."
)


class Gradients(Section):
    """The norm of all gradients together, before it is clipped: where a training is rough, and how near it came to
    diverging."""

    heading = "Gradient norms"
    place = 310

    def applies(self, facts: Facts) -> bool:
        """Whether it was logged."""
        return any(curve.logged for curves in facts.curves.values() for curve in curves)

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """A line for each variant, over steps."""
        return {"gradient-norms": _chart(facts).figure()}

    def html(self, facts: Facts) -> str:
        """A line for each variant, over steps."""
        return f'{key(facts)}{_chart(facts).html()}<p class="note">{NOTE}</p>'


def _chart(facts: Facts) -> LineChart:
    series = []
    for row in reversed(facts.comparison.rows):
        points = mean_points(facts.groups[row.variant], facts.curves[row.variant], GRADIENT, "steps")
        if points:
            series.append(Series(facts.numbers[row.variant], row.variant, points))
    y = fit([value for item in series for point in item.points for value in (point.low, point.high)], log=True)
    x = fit([0.0, *(point.x for item in series for point in item.points)])
    spoken = "; ".join(f"{item.name} ends at {item.points[-1].y:.3g}" for item in reversed(series))
    title = f"norm of the gradient{', logarithmic' if y.log else ''}"
    return LineChart(series, x, y, AXES["steps"], title, spoken, short)
