"""What a comparison says in sentences: which variant is best, and whether the seeds suffice to say so."""

from __future__ import annotations

import math

from paddle_tfm import units
from paddle_tfm.comparison.comparable import reasons
from paddle_tfm.comparison.statistics import CONFIDENCE, Difference
from paddle_tfm.comparison.table import Comparison, Row


def verdict(comparison: Comparison) -> str:
    """One sentence: which variant is best, and whether the seeds suffice to say so."""
    best, metric = comparison.rows[0], comparison.metric
    others = [row for row in comparison.comparable if row.variant != comparison.baseline]
    value = f"{units.metric_name(metric)} {comparison.text(metric, best.mean[metric], best.spread[metric])}"
    if comparison.split == "validation":
        value += " on the validation split"
    if math.isnan(best.mean[metric]):
        lost = all(run.results.get("diverged") for run in comparison.runs)
        reason = "every run diverged" if lost else f"no run has a value of {units.metric_name(metric)}"
        return f"No variant is best: {reason}."
    apart = reasons(comparison.obstacles)
    if apart and not others:
        return f"Nothing can be compared: {apart}."
    if not others:
        text = f"“{best.variant}” is the only variant here: {value} over {plural(len(best.seeds), 'seed')}"
    elif best.variant == comparison.baseline:
        text = f"The baseline “{best.variant}” {_leads(comparison)} ({value}){_standing(others)}"
    else:
        text = f"“{best.variant}” {_leads(comparison)} ({value}) {_against(comparison, best.difference)}"
    if best.diverged:
        text += f"; {best.diverged} of its {len(best.seeds)} runs diverged and are not in that mean"
    return f"{text}.{f' Not compared: {apart}.' if apart else ''}"


def _leads(comparison: Comparison) -> str:
    """`has the best mean`, or with whom it shares it: equal means may be written to different digits."""
    metric = comparison.metric
    best, *rest = comparison.comparable
    equal = [f"“{row.variant}”" for row in rest if math.isclose(row.mean[metric], best.mean[metric], rel_tol=1e-12)]
    if not equal:
        return "has the best mean"
    return f"shares the best mean with {' and '.join(filter(None, [', '.join(equal[:-1]), equal[-1]]))}"


def _standing(others: list[Row]) -> str:
    """How the others stand to a baseline that leads."""
    differences = [row.difference for row in others if row.difference]
    count = {word: sum(item.verdict == word for item in differences) for word in ("worse", "equal", "better")}
    unclear = len(others) - sum(count.values())
    pairs = max((item.pairs for item in differences if item.verdict == "undetermined"), default=0)
    seeds = plural(pairs, "seed") if pairs else "no seed in common"
    if len(others) == 1:
        if unclear:
            return f", but {seeds} cannot tell these apart" if pairs else f", but {seeds} tells these apart"
        return f"; the other is {differences[0].verdict}, paired over {plural(differences[0].pairs, 'seed')}"
    parts = [f"{number} {'is' if number == 1 else 'are'} {word}" for word, number in count.items() if number]
    parts += [f"{unclear} cannot be told apart from it by {seeds}"] if unclear else []
    return f"; of {len(others)} others, {', '.join(parts)}"


def _against(comparison: Comparison, difference: Difference | None) -> str:
    """How the leader stands to the baseline."""
    base = f"the baseline “{comparison.baseline}”"
    if difference is None:
        return f"but shares no finished seed with {base}: nothing tells these apart"
    seeds = plural(difference.pairs, "seed")
    if difference.verdict == "undetermined":
        return f"but {seeds} cannot tell these apart: {change(comparison, difference)} against {base}"
    if difference.verdict == "equal":
        return f"and equals {base} on each of {seeds}"
    return f"and is {difference.verdict} than {base}: {change(comparison, difference)}, {seeds}"


def change(comparison: Comparison, difference: Difference) -> str:
    """A difference with its interval: `+1.2 points (95%: −0.3 to +2.7)`."""
    mean = mean_difference(comparison, difference)
    if difference.half_width is None:
        return f"{mean}, no interval from {plural(difference.pairs, 'seed')}"
    return f"{mean} ({CONFIDENCE:.0%}: {interval(comparison, difference)})"


def mean_difference(comparison: Comparison, difference: Difference) -> str:
    """A difference without its interval: `+1.2 points`."""
    unit = comparison.unit(comparison.metric)
    return units.difference(difference.mean, unit, _resolution(difference, unit))


def interval(comparison: Comparison, difference: Difference) -> str:
    """The interval of a difference: `−0.3 to +2.7`; a dash where there is none."""
    if difference.low is None or difference.high is None:
        return "–"
    unit = comparison.unit(comparison.metric)
    resolution = _resolution(difference, unit)
    return " to ".join(units.signed(end, unit, resolution) for end in (difference.low, difference.high))


def _resolution(difference: Difference, unit: str) -> float | None:
    """What the digits of a difference follow: half of its interval; but an interval that excludes 0 must be seen to."""
    half = difference.half_width
    if half is None or difference.verdict not in ("better", "worse"):
        return half
    nearest = min(abs(difference.mean - half), abs(difference.mean + half))
    hidden = not float(units.signed(nearest, unit, half).replace("−", "-"))
    return nearest if hidden else half


def plural(number: int, what: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
