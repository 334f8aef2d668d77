"""What the runs of a ladder say: how each variant's difference to the baseline changes with compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from paddle_tfm.comparison.runs import Pairs, grouped, pairs
from paddle_tfm.comparison.sizes import by_size, flops_of, size_of, written
from paddle_tfm.comparison.statistics import SIGNIFICANCE, HeldOut, Slope, held_out, slope
from paddle_tfm.comparison.statistics.ladder import FARTHEST
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.recipe.ladder import at
from paddle_tfm.units import plural


@dataclass(frozen=True)
class Rung:
    """One size: `compute` is what a run of the baseline took, in floating-point operations (6 · N · D), by its
    `matrix_parameters` (N) and `tokens` (D); `comparison` is that of the runs of this size."""

    size: str
    compute: float
    matrix_parameters: int
    tokens: float
    comparison: Comparison


@dataclass(frozen=True)
class Trend:
    """A variant over the sizes: its paired differences, compute → one a seed, and the line through them, or why there
    is none."""

    variant: str
    differences: Mapping[float, Sequence[float]]
    line: Slope | None
    reason: str = ""


@dataclass(frozen=True)
class Ladder:
    """All sizes, the smallest first, and a trend for each variant but the baseline. `held_out`: how well smaller sizes
    foretold the largest, or None and `not_held_out` says why."""

    baseline: str
    rungs: Sequence[Rung]
    trends: Sequence[Trend]
    held_out: HeldOut | None
    not_held_out: str = ""


def ladder(comparison: Comparison) -> Ladder | None:
    """The ladder whose largest size a comparison is of; None where it is of none, or the baseline has a run at one size
    only."""
    runs = [*comparison.smaller, *comparison.runs]
    base = next((written(run) for run in comparison.runs if run.variant == comparison.baseline), None)
    if base is None or not comparison.smaller:
        return None
    rungs = [rung for size in by_size(runs) if (rung := _rung(comparison, runs, base, size)) is not None]
    if len(rungs) < 2:
        return None
    names = list(dict.fromkeys(written(run) for run in comparison.runs if written(run) != base))
    level = SIGNIFICANCE / max(len(names), 1)  # intervals that hold for all variants at once (Bonferroni)
    trends = [_trend(name, base, rungs, level) for name in names]
    foretold, reason = _held_out(rungs, trends)
    return Ladder(base, rungs, trends, foretold, reason)


def _rung(comparison: Comparison, runs: Sequence, base: str, size: str) -> Rung | None:
    here = [run for run in runs if size_of(run) == size]
    own = [run for run in here if written(run) == base and not run.results.get("diverged")]
    if not own:
        return None
    same = size == size_of(comparison.runs[0])
    name, metric, question = comparison.name, comparison.metric, comparison.question
    whole = comparison if same else compare(here, name, comparison.folder, metric, at(base, size), question)
    return Rung(
        size,
        fmean(map(flops_of, own)),
        int(own[0].results["matrix_parameters"]),
        fmean(run.results["tokens"] for run in own),
        whole,
    )


def _trend(name: str, base: str, rungs: Sequence[Rung], level: float) -> Trend:
    differences, lost = {}, 0
    for rung in rungs:
        groups = grouped(rung.comparison.runs)
        both = pairs(groups.get(at(name, rung.size), []), groups[at(base, rung.size)], rung.comparison.metric)
        if at(name, rung.size) in rung.comparison.obstacles:
            both = Pairs()
        values = [one - other for one, other in both]
        lost += sum(math.isnan(value) for value in values)
        if known := [value for value in values if not math.isnan(value)]:
            differences[rung.compute] = known
    if lost:
        # Those that are left are no fair sample: what diverged may be what matters.
        return Trend(name, differences, None, f"in {plural(lost, 'pair')} a run diverged, so there is no line")
    if len(differences) < 2 or sum(map(len, differences.values())) < 3:
        return Trend(name, differences, None, "a line needs pairs at two sizes, and three of them")
    return Trend(name, differences, slope(differences, level))


def _held_out(rungs: Sequence[Rung], trends: Sequence[Trend]) -> tuple[HeldOut | None, str]:
    """How the largest size would have been foretold, by the variants that have a line and a pair at every size."""
    computes = [rung.compute for rung in rungs]
    whole = {
        each.variant: each.differences
        for each in trends
        if each.line and list(each.differences) == computes and sum(map(len, list(each.differences.values())[:-1])) > 2
    }
    if len(rungs) < 3:
        return None, "with two sizes there is no line without the largest"
    if not whole:
        return None, "no variant has pairs at every size"
    if (times := computes[-1] / computes[-2]) > FARTHEST:
        return None, f"it is {times:.3g} times the one before, and a line says nothing beyond {FARTHEST:g}"
    return held_out(whole), ""
