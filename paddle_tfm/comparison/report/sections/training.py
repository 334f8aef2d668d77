"""What the logs of training say: learning curves, norms of gradients, and running statistics of norms."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import fmean

from paddle_tfm import units
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.figures.line_chart import LineChart, Series
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.curves import AXES, GRADIENT_NORM, Point, RunCurves, mean_points
from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.language import _
from paddle_tfm.pages import document
from paddle_tfm.pages.axis import Places
from paddle_tfm.pages.style import colour
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column

DISCREPANCIES = {"mean": "|μ_run − μ_B| / σ_B", "deviation": "|σ_run / σ_B − 1|"}  # name in the log → its formula


def logged_chart(facts: Facts, metric: str, title: str, log: bool = False) -> LineChart | None:
    """What each step or evaluation logged under that name, a line a variant; None where nothing did."""
    series = facts.lines(lambda name: mean_points(facts.groups[name], facts.curves[name], metric, "steps"))
    return LineChart.fitted(series, (_(AXES["steps"]), title), log=log) if series else None


def learning_curve(facts: Facts, metric: str | None, axis: str) -> LineChart | None:
    """A metric of the validation split, or the loss of training, a line a variant; None where it was not logged."""
    series = facts.lines(lambda name: mean_points(facts.groups[name], facts.curves[name], metric, axis))
    if not series:
        return None
    unit, higher = facts.comparison.unit(metric or ""), bool(metric and facts.comparison.higher_is_better)
    return curve_chart(series, metric, axis, unit, higher)


def curve_chart(series: Sequence[Series], metric: str | None, axis: str, unit: str, higher: bool) -> LineChart:
    """Lines of a metric of the validation split, or of the loss of training."""
    what = f"{_('validation')} {units.metric_name(metric)}" if metric else _("loss of training")
    return LineChart.of_metric(series, (_(AXES[axis]), what), unit, higher, log=not unit and not higher)


class Curves(Section):
    """Learning curves of the deciding metric and of the loss, on steps, tokens or seconds."""

    heading = "Learning curves"
    summary = "validation scores and loss of training, by steps, tokens or seconds"
    place = 300

    def html(self, facts: Facts) -> str:
        """Two figures for each of the three axes, of which one is shown; a checkbox for each variant."""
        panels = {}
        for axis in AXES:
            charts = [learning_curve(facts, metric, axis) for metric in (*_learned(facts), None)]
            if drawn := "".join(chart.html() for chart in charts if chart):
                panels[axis] = f'<div class="by {axis} charts">{drawn}</div>'
        if not panels:
            return f"<p>{_('No evaluation was logged.')}</p>"
        radios = document.choice(_("against"), "x", [(f"x-{axis}", _(axis)) for axis in panels], kind="against-what")
        seeds = max(len(row.seeds) for row in facts.comparison.rows)
        note = _("Colours are those of the scores above. The loss of training is a mean over stretches of steps.")
        note += _(" The band is the range of the seeds, the line their mean.") if seeds > 1 else ""
        return (
            f'<div class="curves">{radios}{_checkboxes(facts)}{"".join(panels.values())}{document.notes([note])}</div>'
        )


def _learned(facts: Facts) -> list[str]:
    """The deciding metric, of the validation split and of each further test that was scored while training."""
    metric = facts.comparison.learned
    logged = dict.fromkeys(name for curves in facts.curves.values() for curve in curves for name in curve.values)
    return [metric, *(name for name in logged if name.startswith(f"{metric}{units.AT}"))]


def _checkboxes(facts: Facts) -> str:
    numbers = {row.variant: facts.numbers[row.variant] for row in facts.comparison.rows}
    boxes = "".join(
        f'<label class="{colour(number)}"><input type="checkbox" id="show-{number}" checked>'
        f"{document.named(number, name)}</label>"
        for name, number in numbers.items()
    )
    return f"<fieldset><legend>{_('show')}</legend>{boxes}</fieldset>" if len(numbers) > 1 else ""


class Gradients(ChartedSection):
    """The norm of all gradients together, before it is clipped: where a training is rough, and how near it came to
    diverging."""

    heading = "Gradient norms"
    summary = "how rough each training was"
    place = 310

    def applies(self, facts: Facts) -> bool:
        return any(curve.gradient_norm for curves in facts.curves.values() for curve in curves)

    def charts(self, facts: Facts) -> dict[str, LineChart]:
        chart = logged_chart(facts, GRADIENT_NORM, _("norm of the gradient"), log=True)
        return {"gradient-norms": chart} if chart else {}

    def notes(self, facts: Facts) -> list[str]:
        return [_("Before clipping, a mean over stretches of steps; the band is the range of the seeds.")]


class Layers(ChartedSection):
    """The norm of the gradient of each layer, at the first and at the last step that logged it: where in the model
    gradients vanish or grow."""

    heading = "Gradient norms by layer"
    summary = "where in the model gradients vanish or grow"
    place = 315

    def applies(self, facts: Facts) -> bool:
        return bool(facts.once(_norms))

    def charts(self, facts: Facts) -> dict[str, LineChart]:
        """Of the first and of the last step a line for each variant, from layer to layer."""
        steps = facts.once(_norms)
        ends = {"first": min(steps), **({"last": max(steps)} if len(steps) > 1 else {})}
        return {f"gradient-norms-by-layer-{name}": _by_layer(facts, step) for name, step in ends.items()}

    def notes(self, facts: Facts) -> list[str]:
        return [
            _(
                "The joint norm of the gradients of all parameters of a layer before clipping: the mean over seeds, "
                "and their range. The first step and the last of the recipe are always logged; further ones where the "
                "recipe says train.gradient_norms: 100, for every hundredth."
            )
        ]


ByLayer = dict[int, dict[str, dict[str, list[float]]]]  # step → layer → variant → norms of its seeds


def _norms(facts: Facts) -> ByLayer:
    """What the runs logged, the layers in the order of the model."""
    norms: ByLayer = {}
    for variant, curves in facts.curves.items():
        for curve in curves:
            for step, layers in curve.gradients.items():
                for layer, norm in layers.items():
                    if math.isfinite(norm):
                        norms.setdefault(step, {}).setdefault(layer, {}).setdefault(variant, []).append(norm)
    return dict(sorted(norms.items()))


def _by_layer(facts: Facts, step: int) -> LineChart:
    layers = facts.once(_norms)[step]

    def points(variant: str) -> list[Point]:
        logged = [(place, of[variant]) for place, of in enumerate(layers.values()) if variant in of]
        return [Point(float(place), fmean(norms), min(norms), max(norms)) for place, norms in logged]

    titles = _("layer"), _("norm of the gradient at step {step}").format(step=f"{step:,}")
    x = Places.of(re.sub(r"[._]+(layers[.])?", " ", layer) for layer in layers)
    return LineChart.fitted(facts.lines(points), titles, log=True, x=x)


class Norms(ChartedSection):
    """How far what norms use in evaluation is from what they used in training, by norm and by step."""

    heading = "Norms: training against evaluation"
    summary = "how far running statistics are from those of a batch"
    place = 320

    def applies(self, facts: Facts) -> bool:
        return any(curve.discrepancies for curves in facts.curves.values() for curve in curves)

    def charts(self, facts: Facts) -> dict[str, LineChart]:
        charts = {
            f"norm-discrepancy-of-{name}s": logged_chart(facts, f"norm_discrepancy_{name}", f"{formula}, mean")
            for name, formula in DISCREPANCIES.items()
        }
        return {name: chart for name, chart in charts.items() if chart}

    def notes(self, facts: Facts) -> list[str]:
        return [
            _(
                "A norm with running statistics (μ_run, σ_run) uses them in evaluation, and those of its batch (μ_B, "
                "σ_B) in training; each number is a mean over channels and over eight training batches, in the chart "
                "also over norms. The table has the evaluation whose checkpoint was scored."
            )
        ]

    def tables(self, facts: Facts) -> dict[str, Table]:
        rows = [row for variant in facts.groups for row in _discrepancies(facts, variant)]
        numbers = [
            column(name, formula, lambda value: f"{value:.3f}", right=True, none="–")
            for name, formula in DISCREPANCIES.items()
        ]
        title = _("Discrepancy of running statistics, means over seeds")
        return {"norm-discrepancy": Table([column("variant"), column("norm"), *numbers], rows, title)}


def _discrepancies(facts: Facts, variant: str) -> list[dict[str, object]]:
    """Means over the seeds of a variant."""
    runs = [
        norms for run, curve in zip(facts.groups[variant], facts.curves[variant]) if (norms := _at_best(run, curve))
    ]
    rows: list[dict[str, object]] = []
    for norm in dict.fromkeys(norm for run in runs for norm in run):
        values = {name: [run[norm][name] for run in runs if name in run.get(norm, {})] for name in DISCREPANCIES}
        means = {name: fmean(numbers) if numbers else None for name, numbers in values.items()}
        rows.append({"variant": variant, "norm": norm, **means})
    return rows


def _at_best(run: Result, curve: RunCurves) -> dict[str, dict[str, float]]:
    """Norm → its discrepancies at the best evaluation, or at the last where that was not logged."""
    steps = sorted(curve.discrepancies)
    best = run.results["best_step"]
    return curve.discrepancies[best if best in steps else steps[-1]] if steps else {}
