"""What the runs of a ladder say: how each variant's difference to the baseline changes with compute, as numbers and in
sentences, which say nothing beyond what its runs tested."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from paddle_tfm import units
from paddle_tfm.comparison.runs.finished import Pairs, grouped, pairs
from paddle_tfm.comparison.runs.sizes import by_size, flops_of, size_of, written
from paddle_tfm.comparison.statistics import CONFIDENCE, SIGNIFICANCE, Slope, slope
from paddle_tfm.comparison.statistics.ladder import FARTHEST
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.language import _, counted
from paddle_tfm.recipe.sections.ladder import at


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
    is none: of `lost` pairs a run diverged, or there are too few."""

    variant: str
    differences: Mapping[float, Sequence[float]]
    line: Slope | None
    lost: int = 0

    @property
    def reason(self) -> str:
        """Why there is no line; "" where there is one."""
        if self.line is not None:
            return ""
        if self.lost:
            text = _("in {pairs} a run diverged, so there is no line")
            return text.format(pairs=counted(self.lost, "pair"))
        return _("a line needs pairs at two sizes, and three of them")


@dataclass(frozen=True)
class Ladder:
    """All sizes, the smallest first, and a trend for each variant but the baseline."""

    baseline: str
    rungs: Sequence[Rung]
    trends: Sequence[Trend]


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
    return Ladder(base, rungs, [_trend(name, base, rungs, level) for name in names])


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
        return Trend(name, differences, None, lost)
    if len(differences) < 2 or sum(map(len, differences.values())) < 3:
        return Trend(name, differences, None)
    return Trend(name, differences, slope(differences, level))


def operations(flops: float) -> str:
    """A number of floating-point operations: `2.3e9`."""
    mantissa, _e, exponent = f"{flops:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def rise(comparison: Comparison, line: Slope) -> str:
    """What a doubling of compute adds: `+0.42 points a doubling (95%: −0.10 to +0.94)`."""
    unit, half = comparison.unit(comparison.metric), (line.high - line.low) / 2
    nearest = min(abs(line.low), abs(line.high))
    resolution = nearest if _is_trend(line) and nearest < half else half
    ends = _(" to ").join(units.signed(end, unit, resolution) for end in (line.low, line.high))
    text = _("{difference} a doubling of compute ({confidence:.0%}: {ends})")
    return text.format(difference=units.difference(line.slope, unit, resolution), confidence=CONFIDENCE, ends=ends)


def _is_trend(line: Slope) -> bool:
    """Whether the slope's interval excludes 0; else the line's crossing has no interval."""
    return line.low > 0 or line.high < 0


def crossing(line: Slope) -> str:
    """Where a line that rises or falls for sure is 0: inside or outside of what was tested, or nowhere that may be
    spoken of. An end of its interval that is beyond is only said to be there."""
    if line.crossing is None or line.crossing_interval is None:
        return _("its line does not reach 0 within {times:g} times of what was tested").format(times=FARTHEST)
    least, most = line.tested[0] / FARTHEST, line.tested[1] * FARTHEST
    low, high = line.crossing_interval
    start = operations(low) if low >= least else _("less than {operations}").format(operations=operations(least))
    end = operations(high) if high <= most else _("more than {operations}").format(operations=operations(most))
    where = {
        "inside": _("its line is 0 at {operations} operations, inside what was tested"),
        "outside": _("its line is 0 at {operations} operations, outside of what was tested"),
    }[line.place].format(operations=operations(line.crossing))
    return f"{where} ({CONFIDENCE:.0%}: {start}{_(' to ')}{end})"


def trend(comparison: Comparison, trend: Trend) -> str:
    """One sentence for one variant: whether it gains on the baseline as sizes grow, and where the two are even."""
    line = trend.line
    if line is None:
        return _("“{variant}”: {reason}.").format(variant=trend.variant, reason=trend.reason)
    numbers = _("{rise}, {pairs} at {sizes}").format(
        rise=rise(comparison, line),
        pairs=counted(sum(map(len, trend.differences.values())), "pair"),
        sizes=counted(len(trend.differences), "size"),
    )
    if not _is_trend(line):
        text = _("“{variant}”: no trend can be told, {numbers}.").format(variant=trend.variant, numbers=numbers)
    else:
        gains = (line.slope > 0) == comparison.higher_is_better
        text = (
            _("“{variant}”: gains on the baseline, {numbers}; {crossing}.")
            if gains
            else _("“{variant}”: loses against the baseline, {numbers}; {crossing}.")
        ).format(variant=trend.variant, numbers=numbers, crossing=crossing(line))
    if line.misfit is None or line.misfit >= SIGNIFICANCE:
        return text
    return _("{text} The differences do not lie on a line (p = {misfit:.2g}): read the sizes one by one.").format(
        text=text, misfit=line.misfit
    )


def tested(ladder: Ladder) -> str:
    """Between which sizes all of this holds."""
    first, last = ladder.rungs[0], ladder.rungs[-1]
    text = _("tested from size {first} to {last}, {low} to {high} floating-point operations a run")
    compute = {"low": operations(first.compute), "high": operations(last.compute)}
    return text.format(first=first.size, last=last.size, **compute)
