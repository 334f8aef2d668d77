"""The norms of gradients by layer, at the steps that logged them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from paddle_tfm.comparison.report.figures.heat import HeatMap, heat_figure
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.pages.chart import short
from paddle_tfm.plotting import page_figure
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_MAPS = 9  # variants that a figure shows
NOTE = (
    "The joint norm of the gradients of all parameters of a layer before clipping, means over seeds. The first step "
    "is always logged, that is, the gradients of the initial values; further ones where the recipe says "
    "train.gradient_norms: 100, for every hundredth."
)
ByLayer = dict[str, dict[int, dict[str, float]]]  # variant → step → layer → norm


class Layers(Section):
    """The norm of the gradient of each layer, at the first step and at every step that logged it: where in the model
    gradients vanish or grow."""

    heading = "Gradient norms by layer"
    place = 315

    def applies(self, facts: Facts) -> bool:
        """Whether any step of a run logged them."""
        return bool(_norms(facts))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each step and layer."""
        norms = _norms(facts)
        return {"gradient-norms-by-layer": _table(norms, _steps(norms))}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """Layer by step for each variant, where several steps logged them."""
        norms = _norms(facts)
        several = {variant: by_step for variant, by_step in norms.items() if len(by_step) > 1}
        maps = [_map(variant, by_step) for variant, by_step in list(several.items())[:MAX_MAPS]]
        titles = "layer", "training step", "norm of the gradient"
        return {"gradient-norms-by-layer": heat_figure(maps, titles, "log")} if maps else {}

    def html(self, facts: Facts) -> str:
        """The figure; of the table the first and the last step."""
        norms = _norms(facts)
        steps = _steps(norms)
        figures = "".join(page_figure(figure) for figure in self.figures(facts).values())
        table = _table(norms, list(dict.fromkeys([steps[0], steps[-1]])))
        return f'{figures}<p class="note">{NOTE}</p>{table.html()}'


def _norms(facts: Facts) -> ByLayer:
    """Means over the runs of a variant that logged a step."""
    norms: ByLayer = {}
    for row in facts.comparison.rows:
        logged = [curve.gradients for curve in facts.curves[row.variant] if curve.gradients]
        for step in sorted({step for run in logged for step in run}):
            runs = [run[step] for run in logged if step in run]
            layers = dict.fromkeys(layer for run in runs for layer in run)
            means = {layer: fmean(run.get(layer, math.nan) for run in runs) for layer in layers}
            norms.setdefault(row.variant, {})[step] = means
    return norms


def _steps(norms: ByLayer) -> list[int]:
    return sorted({step for by_step in norms.values() for step in by_step})


def _map(variant: str, by_step: dict[int, dict[str, float]]) -> HeatMap:
    layers = list(dict.fromkeys(layer for means in by_step.values() for layer in means))
    values = [[means.get(layer, math.nan) for means in by_step.values()] for layer in layers]
    return HeatMap(variant, np.array(values), layers, [short(step) for step in by_step])


def _table(norms: ByLayer, steps: Sequence[int]) -> Table[tuple[int, str]]:
    layers = dict.fromkeys(layer for by_step in norms.values() for means in by_step.values() for layer in means)
    rows = [
        (step, layer) for step in steps for layer in layers if any(layer in of.get(step, {}) for of in norms.values())
    ]

    def column(variant: str) -> Column[tuple[int, str]]:
        def value(row: tuple[int, str]) -> float | None:
            norm = norms[variant].get(row[0], {}).get(row[1])
            return norm if norm is not None and math.isfinite(norm) else None

        def text(row: tuple[int, str]) -> str:
            return "–" if (norm := value(row)) is None else f"{norm:.3g}"

        return Column(variant, text, lambda row: {variant: value(row)}, right=True)

    layer = Column[tuple[int, str]]("layer", lambda row: row[1], lambda row: {"layer": row[1]})
    step = Column[tuple[int, str]]("step", lambda row: f"{row[0]:,}", lambda row: {"step": row[0]}, right=True)
    return Table([layer, step, *map(column, norms)], rows, "Norm of the gradient before clipping, by layer")
