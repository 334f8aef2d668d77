"""How far the running statistics of norms are from those of training batches."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm.comparison.report.figures.charts import LineChart, key
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.curves import AXES, RunCurves, mean_points
from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import Series, short
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Part(NamedTuple):
    """One of the two numbers of a norm: its name in the log, its formula, and the name of its figure."""

    name: str
    formula: str
    figure: str


PARTS = (
    Part("mean", "|μ_run − μ_B| / σ_B", "norm-discrepancy-of-means"),
    Part("deviation", "|σ_run / σ_B − 1|", "norm-discrepancy-of-deviations"),
)
NOTE = (
    "A norm with running statistics (μ_run, σ_run) uses them in evaluation, and those of its batch (μ_B, σ_B) in "
    "training; each number is a mean over channels and over eight training batches, in the chart also over norms. Both "
    "are 0 where evaluation sees what training saw. The table has the evaluation whose checkpoint was scored."
)


class Norms(Section):
    """How far what norms use in evaluation is from what they used in training, by norm and by step."""

    heading = "Norms: training against evaluation"
    place = 320

    def applies(self, facts: Facts) -> bool:
        """Whether a variant has norms with running statistics."""
        return any(curve.discrepancies for curves in facts.curves.values() for curve in curves)

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each norm of each variant that has such norms."""
        rows = [row for variant in facts.groups for row in _rows(facts, variant)]
        numbers = [column(part.name, part.formula, _text, right=True) for part in PARTS]
        title = "Discrepancy of running statistics, means over seeds"
        return {"norm-discrepancy": Table([column("variant"), column("norm"), *numbers], rows, title)}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """Both discrepancies over steps."""
        return {name: chart.figure() for name, chart in _charts(facts).items()}

    def html(self, facts: Facts) -> str:
        """The charts, then the table."""
        charts = "".join(chart.html() for chart in _charts(facts).values())
        table = self.tables(facts)["norm-discrepancy"].html()
        return f'{key(facts)}<div class="charts">{charts}</div><p class="note">{NOTE}</p>{table}'


def _charts(facts: Facts) -> dict[str, LineChart]:
    charts = {}
    for part in PARTS:
        series = []
        for row in reversed(facts.comparison.rows):
            metric = f"norm_discrepancy_{part.name}"
            if points := mean_points(facts.groups[row.variant], facts.curves[row.variant], metric, "steps"):
                series.append(Series(facts.numbers[row.variant], row.variant, points))
        if series:
            y = fit([value for item in series for point in item.points for value in (point.low, point.high)])
            x = fit([0.0, *(point.x for item in series for point in item.points)])
            spoken = "; ".join(f"{item.name} ends at {item.points[-1].y:.3g}" for item in reversed(series))
            charts[part.figure] = LineChart(series, x, y, AXES["steps"], f"{part.formula}, mean", spoken, short)
    return charts


def _rows(facts: Facts, variant: str) -> list[dict[str, object]]:
    """Means over the seeds of a variant."""
    runs = [
        norms for run, curve in zip(facts.groups[variant], facts.curves[variant]) if (norms := _at_best(run, curve))
    ]
    rows: list[dict[str, object]] = []
    for norm in dict.fromkeys(norm for run in runs for norm in run):
        values = {part.name: [run[norm][part.name] for run in runs if part.name in run.get(norm, {})] for part in PARTS}
        means = {name: fmean(numbers) if numbers else None for name, numbers in values.items()}
        rows.append({"variant": variant, "norm": norm, **means})
    return rows


def _at_best(run: Result, curve: RunCurves) -> dict[str, dict[str, float]]:
    """Norm → its discrepancies at the best evaluation, or at the last where that was not logged."""
    steps = sorted(curve.discrepancies)
    best = run.results["best_step"]
    return curve.discrepancies[best if best in steps else steps[-1]] if steps else {}


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
