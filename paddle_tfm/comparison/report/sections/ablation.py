"""A grid of factors as an ablation: its matrix, its effects and a picture; and a full model without its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.ablation import (
    Effect,
    Grid,
    Levels,
    effect_words,
    grid,
    leave_one_out,
    left_out,
    method,
    name_of,
    no_effects,
    words,
)
from paddle_tfm.comparison.columns import difference_and_interval, metric, more_seeds
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.figures.line_chart import LineChart, Series
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.curves import Point
from paddle_tfm.comparison.statistics import CONFIDENCE, Mean, Verdict
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import verdict_text
from paddle_tfm.language import _, counted, enumerated
from paddle_tfm.pages.axis import Places
from paddle_tfm.tabular import Column, Table, column

APART = 0.05  # between the lines, of the way from one level to the next: intervals that do not hide each other
OF_INTERACTIONS = {"better": "more than the sum", "worse": "less than the sum", "equal": "the sum"}


class Ablation(ChartedSection):
    """Of a grid the score of each cell, main effects and interactions; of `ablate` what each part is worth."""

    heading = "Ablation"
    place = 110
    folded = False  # whoever trains a grid asks for just this

    def applies(self, facts: Facts) -> bool:
        """Whether the runs are of a grid of two factors or more, or of a full model without its parts."""
        return bool(ablation_tables(facts))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """The matrix and the effects, or the full model and those without a part."""
        return ablation_tables(facts)

    def charts(self, facts: Facts) -> dict[str, LineChart]:
        """The levels of the last factor, a line for each combination of the others."""
        here = facts.once(_grid_of)
        return {} if here is None else {"ablation-levels": _chart(facts.comparison, here)}

    def notes(self, facts: Facts) -> list[str]:
        here = facts.once(_grid_of)
        drawn = _("Bars are {confidence} intervals of the means, each by itself; differences are paired by seed.")
        return [*([drawn.format(confidence=f"{CONFIDENCE:.0%}")] if here else []), *self.text(facts)]

    def text(self, facts: Facts) -> list[str]:
        here = facts.once(_grid_of)
        if here is None:
            return []
        reason = no_effects(facts.comparison, here) or left_out(facts.comparison, here)
        return [*([reason] if reason else []), *(method(here) if here.effects else ())]

    def data(self, facts: Facts) -> dict[str, Any]:
        here = facts.once(_grid_of)
        if here is None:
            return {"models": leave_one_out(facts.comparison)}
        return {
            "factors": {path: list(levels) for path, levels in here.factors.items()},
            "baseline": dict(here.base),
            "cells": [_cell_record(facts.comparison, here, levels) for levels in here.cells],
            "seeds": list(here.seeds),
            "effects": _effects(facts.comparison, here).records(),
            "reason": no_effects(facts.comparison, here) or left_out(facts.comparison, here),
        }


def _grid_of(facts: Facts) -> Grid | None:
    return grid(facts.comparison)


def ablation_tables(facts: Facts) -> dict[str, Table]:
    """name → table of an ablation; none where the runs are of none."""
    comparison, here = facts.comparison, facts.once(_grid_of)
    if here is not None:
        tables = {"ablation-matrix": _matrix(comparison, here)}
        return {**tables, "ablation-effects": _effects(comparison, here)} if here.effects else tables
    models = leave_one_out(comparison)
    return {"ablation": _without(comparison, models)} if len(models) > 1 else {}


def _cell_record(comparison: Comparison, here: Grid, levels: Levels) -> dict[str, Any]:
    mean = here.mean(levels, comparison.metric)
    numbers = (None, None, None) if mean is None else mean
    records = dict(zip(("mean", "low", "high"), numbers))
    return {"levels": dict(zip(here.factors, levels)), "runs": len(here.cells[levels]), **records}


def _half(mean: Mean | None) -> float | None:
    return None if mean is None or mean.high is None else mean.high - mean.value


def _matrix(comparison: Comparison, here: Grid) -> Table[Levels]:
    """A row for each combination of all factors but the last, whose levels are the columns."""
    *others, last = here.factors
    name = comparison.metric
    means = {levels: here.mean(levels, name) for levels in here.cells}
    known = {levels: mean.value for levels, mean in means.items() if mean and not here.diverged(levels)}
    best = (max if comparison.higher_is_better else min)(known.values(), default=math.nan)
    leading = [levels for levels, value in known.items() if math.isclose(value, best, rel_tol=1e-12)]

    def text(level: str, row: Levels) -> str:
        cell = (*row, level)
        mean = means[cell]
        value = units.plus_minus(mean and mean.value, _half(mean), comparison.unit(name))
        return _(", ").join(filter(None, [value, here.diverged(cell)]))

    def values(level: str, row: Levels) -> dict[str, object]:
        cell = (*row, level)
        mean = means[cell]
        return {level: mean and mean.value, f"{level}_half_width": _half(mean)}

    def style(level: str, row: Levels) -> str:
        return "bold" if (*row, level) in leading else ""

    columns: list[Column[Levels]] = [
        column(name_of(path), of=itemgetter(place), is_name=True) for place, path in enumerate(others)
    ]
    columns += [
        Column(f"{name_of(last)}: {level}", partial(text, level), partial(values, level), 100, True, False,
               partial(style, level))
        for level in here.factors[last]
    ]  # fmt: skip
    rows = list(dict.fromkeys(levels[:-1] for levels in here.cells))
    title = _("{split} {metric} by {factors}, mean ± half of its {confidence} interval{best}").format(
        split=_(comparison.split),
        metric=units.metric_name(name),
        factors=words([name_of(path) for path in here.factors]),
        confidence=f"{CONFIDENCE:.0%}",
        best=_("; best (bold): {levels}").format(levels=enumerated(map(words, leading))) if leading else "",
    )
    return Table(columns, rows, title)


def _effects(comparison: Comparison, here: Grid) -> Table[tuple[Effect, Verdict]]:
    """A row for each main effect and each interaction."""

    def verdict(row: tuple[Effect, Verdict]) -> str:
        effect, said = row
        of_interaction = _(OF_INTERACTIONS.get(said.verdict, "")) if effect.is_interaction else ""
        return of_interaction or verdict_text(comparison, said)

    columns: list[Column[Any]] = [
        Column(
            "effect", lambda row: effect_words(here, row[0]), lambda row: {"levels": dict(row[0].levels)}
        ),
        *difference_and_interval(comparison, here.effects, lambda row: row[1]),
        Column("verdict", verdict, lambda row: {"verdict": row[1].verdict}),
        more_seeds(here.effects, lambda row: row[1]),
    ]  # fmt: skip
    title = _("Effects on {metric}, paired over {seeds}; the intervals hold for all {number} at once (Bonferroni)")
    metric, seeds = units.metric_name(comparison.metric), counted(len(here.seeds), "seed")
    return Table(columns, here.effects, title.format(metric=metric, seeds=seeds, number=len(here.effects)))


def _without(comparison: Comparison, models: Mapping[str, str]) -> Table[Row]:
    """The full model, and below it those without a part, as papers print it."""
    rows = {row.variant: row for row in comparison.rows}

    def verdict(row: Row) -> str:
        return verdict_text(comparison, row.difference) if row.difference else ""

    kept = [rows[name] for name in models]
    columns: list[Column[Row]] = [
        column("model", of=lambda row: models[row.variant]),
        metric(comparison, comparison.metric),
        *difference_and_interval(comparison, kept, lambda row: row.difference),
        column("verdict", of=verdict),
    ]
    return Table(columns, kept, _("The full model, and without each of its parts"))


def _chart(comparison: Comparison, here: Grid) -> LineChart:
    """Dots with intervals for each cell, and a line through those of one combination of the other factors, in the
    colour of its first cell."""
    last = [*here.factors][-1]
    levels, name, unit = here.factors[last], comparison.metric, comparison.unit(comparison.metric)
    rows = list(dict.fromkeys(cell[:-1] for cell in here.cells))
    series: list[Series] = []
    for i, row in enumerate(rows):
        shift, points, numbers = APART * (i - (len(rows) - 1) / 2), [], []
        for place, level in enumerate(levels):
            cell = (*row, level)
            numbers += [comparison.numbers[run.variant] for run in here.cells[cell][:1]]
            if (mean := here.mean(cell, name)) is not None:
                half = _half(mean) or 0.0
                points.append(Point(place + shift, mean.value, mean.value - half, mean.value + half))
        number = next(iter(numbers), i)
        line = [Point(point.x, point.y, point.y, point.y) for point in points]
        series += [Series(number, words(row), line, marked=False)] if len(line) > 1 else []
        series += [Series(number, words(row), [point]) for point in points]
    titles = name_of(last), f"{_(comparison.split)} {units.metric_name(name)}"
    return LineChart.of_metric(series, titles, unit, comparison.higher_is_better, x=Places.of(levels))
