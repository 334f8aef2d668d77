"""Runs of variants paired with the baseline's, and what the pairs say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.statistics import Verdict, decide, worst_value

if TYPE_CHECKING:
    from paddle_tfm.comparison.table import Result


def verdicts(
    groups: Mapping[str, Sequence[Result]], baseline: str, metric: str, unit: str, higher: bool, question: Question
) -> dict[str, Verdict]:
    """A verdict on each variant that has a seed in common with the baseline, scored on the same texts."""
    pairs = {variant: _pairs(runs, groups[baseline], metric) for variant, runs in groups.items() if variant != baseline}
    lowest, highest = units.bounds(unit, higher)
    smallest = None if question.smallest_effect is None else units.stored(question.smallest_effect, unit)
    some = {variant: values for variant, values in pairs.items() if values}
    return decide(some, question.rule(), higher, smallest, highest - lowest)


def _pairs(runs: Sequence[Result], base: Sequence[Result], metric: str) -> list[tuple[float, float]]:
    """(variant, baseline) in the order of seeds; NaN where a run diverged. Runs without the metric are left out."""
    known = {(run.seed, run.corpus): run.metric(metric) for run in base if _counts(run, metric)}
    ours = sorted((run for run in runs if _counts(run, metric)), key=lambda run: run.seed)
    return [(run.metric(metric), known[run.seed, run.corpus]) for run in ours if (run.seed, run.corpus) in known]


def _counts(run: Result, metric: str) -> bool:
    return bool(run.results.get("diverged")) or not math.isnan(run.metric(metric))


def standings(groups: Mapping[str, Sequence[Result]], metric: str, unit: str, higher: bool) -> dict[str, float]:
    """The mean by which each variant is ranked: one that diverged counts as the worst that the metric can be, or, where
    it has no worst, as the worst run here; NaN where no run of it has a value."""
    values = {variant: np.array([run.metric(metric) for run in runs]) for variant, runs in groups.items()}
    worst = worst_value(np.concatenate(list(values.values())), higher, units.bounds(unit, higher)[0 if higher else 1])
    return {variant: _standing(groups[variant], column, worst) for variant, column in values.items()}


def _standing(runs: Sequence[Result], values: np.ndarray, worst: float) -> float:
    counted = [worst if run.results.get("diverged") else value for run, value in zip(runs, values.tolist())]
    known = [value for value in counted if not math.isnan(value)]
    return fmean(known) if known and not np.isnan(values).all() else math.nan
