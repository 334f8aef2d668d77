"""What a ladder says in sentences, and nothing beyond what its runs tested."""

from __future__ import annotations

from paddle_tfm import units
from paddle_tfm.comparison.ladder import Ladder, Trend
from paddle_tfm.comparison.statistics import CONFIDENCE, SIGNIFICANCE, Slope
from paddle_tfm.comparison.statistics.ladder import FARTHEST
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.units import plural

METHOD = (
    "Compute is 6 · N · D floating-point operations of a run of the baseline (arXiv:2001.08361): N are the parameters "
    "in the matrices of encoder and decoder, D the target tokens of training. The line is least squares through all "
    "differences paired by seed, d = a + b · log₂(compute) + error, errors independent and of one variance; its "
    "intervals are Student’s t with two degrees of freedom fewer than there are pairs, and hold for all variants at "
    "once (Bonferroni). The interval of a crossing is Fieller’s. Beyond 4 times what was tested nothing is said. Each "
    "size is compared as if it were the only one. Whether lines foretell more than the ranking at one size is tried on "
    "the largest size, held out; DataDecide (arXiv:2504.11393) rarely saw it."
)


def operations(flops: float) -> str:
    """A number of floating-point operations: `2.3e9`."""
    mantissa, _, exponent = f"{flops:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def rise(comparison: Comparison, line: Slope) -> str:
    """What a doubling of compute adds: `+0.42 points a doubling (95%: −0.10 to +0.94)`."""
    unit, half = comparison.unit(comparison.metric), (line.high - line.low) / 2
    nearest = min(abs(line.low), abs(line.high))
    resolution = nearest if is_trend(line) and nearest < half else half
    ends = " to ".join(units.signed(end, unit, resolution) for end in (line.low, line.high))
    return f"{units.difference(line.slope, unit, resolution)} a doubling of compute ({CONFIDENCE:.0%}: {ends})"


def is_trend(line: Slope) -> bool:
    """Whether the slope's interval excludes 0."""
    return line.low > 0 or line.high < 0


def direction(comparison: Comparison, line: Slope) -> str:
    """Whether a variant gains on the baseline as sizes grow."""
    if not is_trend(line):
        return "no trend can be told"
    return "gains on the baseline" if (line.slope > 0) == comparison.higher_is_better else "loses against the baseline"


def crossing(line: Slope) -> str:
    """Where the line is 0: inside or outside of what was tested, or nowhere that may be spoken of."""
    if line.slope == line.intercept == 0:
        return "its line is 0 everywhere"
    if line.crossing is None:
        return f"its line does not reach 0 within {FARTHEST:g} times of what was tested"
    where = f"its line is 0 at {operations(line.crossing)} operations, {line.place} {_of(line)}what was tested"
    if line.crossing_interval is None:
        return f"{where}, but its slope may be 0: a crossing is not established"
    return f"{where} ({CONFIDENCE:.0%}: {ends(line)})"


def _of(line: Slope) -> str:
    return "of " if line.place == "outside" else ""


def ends(line: Slope) -> str:
    """The interval of the crossing; an end that is beyond what may be spoken of is only said to be there."""
    if line.crossing_interval is None:
        return "–"
    least, most = line.tested[0] / FARTHEST, line.tested[1] * FARTHEST
    low, high = line.crossing_interval
    start = operations(low) if low >= least else f"less than {operations(least)}"
    return f"{start} to {operations(high) if high <= most else f'more than {operations(most)}'}"


def trend(comparison: Comparison, trend: Trend) -> str:
    """One sentence for one variant."""
    line = trend.line
    if line is None:
        return f"“{trend.variant}”: {trend.reason}."
    pairs = plural(sum(map(len, trend.differences.values())), "pair")
    sizes = plural(len(trend.differences), "size")
    text = f"“{trend.variant}”: {direction(comparison, line)}, {rise(comparison, line)}, {pairs} at {sizes}"
    if line.misfit is None or line.misfit >= SIGNIFICANCE:
        return f"{text}; {crossing(line)}."
    bent = f"The differences do not lie on a line (p = {line.misfit:.2g}): read the sizes one by one."
    return f"{text}; {crossing(line)}. {bent}"


def tested(ladder: Ladder) -> str:
    """Between which sizes all of this holds."""
    first, last = ladder.rungs[0], ladder.rungs[-1]
    span = f"{operations(first.compute)} to {operations(last.compute)} floating-point operations a run"
    return f"tested from size {first.size} to {last.size}, {span}"


def held_out(comparison: Comparison, ladder: Ladder) -> str:
    """Whether smaller sizes would have foretold the largest, and by which of the two ways."""
    below, top = ladder.rungs[-2].size, ladder.rungs[-1].size
    if (result := ladder.held_out) is None:
        return f"Size {top} is not foretold from smaller ones: {ladder.not_held_out}."
    unit = comparison.unit(comparison.metric)
    line, single = (_off(error, unit) for error in (result.line_error, result.single_error))
    verdict = "the line did better" if result.line_is_better else "the line did no better"
    return (
        f"Size {top}, foretold from smaller ones: by the lines {result.line_order:.0%} of pairs of variants in order "
        f"and {line} off on average, by size {below} alone {result.single_order:.0%} and {single}: {verdict}."
    )


def _off(error: float, unit: str) -> str:
    return units.difference(error, unit, error / 3 or None).removeprefix("+")
