"""A claim in words: what is measured, what is claimed of it, and what came out."""

from __future__ import annotations

from paddle_tfm import units
from paddle_tfm.comparison.claims.judge import Judgement
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.recipe.sections.claims import ClaimSettings


def subject(claim: ClaimSettings) -> str:
    """What is measured: `exact match of post against pre`."""
    metric = units.metric_name(claim.metric)
    if claim.at is not None:
        metric += f" at {claim.at}" + (f" divided by that at {claim.divided_by}" if claim.divided_by else "")
    metric = f"validation {metric}" if claim.split == "valid" else metric
    against = "" if claim.over is None else f" against {claim.over}"
    return f"{metric} of {claim.variant}{against}"


def claimed(claim: ClaimSettings, unit: str = "") -> str:
    """What is claimed of it: `at least 20 points above`."""
    ending = " times" if claim.of_a_ratio else _points(unit)
    if claim.measure == "percent" or (claim.over is None and unit == "%"):
        ending = "%"
    for name, words in (("above", "above"), ("below", "below")):
        if (size := getattr(claim, name)) is not None:
            return f"at least {size:g}{ending} {words}" if size else words
    if claim.within is not None:
        return f"less than {claim.within:g}{ending} apart"
    ends = (("at least", claim.at_least), ("at most", claim.at_most))
    return " and ".join(f"{words} {end:g}{ending}" for words, end in ends if end is not None)


def _points(unit: str) -> str:
    return " points" if unit == "%" else ""


def measured(judgement: Judgement) -> str:
    """What was measured: `−55.0 points (95%: −70.1 to −40.2), 3 seeds`."""
    if judgement.mean is None:
        return f"no value: {_lost(judgement)}"
    claim, unit, half = judgement.claim, judgement.unit, None
    if judgement.low is not None and judgement.high is not None:
        half = (judgement.high - judgement.low) / 2
    seeds = f"{judgement.seeds} seed{'' if judgement.seeds == 1 else 's'}"
    mean = _number(claim, judgement.mean, unit, half)
    if claim.of_a_ratio:
        mean += " times"
    elif claim.over is not None and claim.measure == "difference":
        mean += _points(unit)
    if half is None:
        interval = "no interval from one seed"
    else:
        ends = (_number(claim, end, unit, half) for end in (judgement.low, judgement.high) if end is not None)
        interval = f"{CONFIDENCE:.0%}: {' to '.join(ends)}"
    return f"{mean} ({interval}), {seeds}" + (f", {_lost(judgement)}" if judgement.lost else "")


def _lost(judgement: Judgement) -> str:
    if judgement.reason:
        return judgement.reason
    if not judgement.lost:
        return "no seed in common" if judgement.claim.over is not None else "no run"
    return f"{judgement.lost} {'has' if judgement.lost == 1 else 'have'} no value (diverged, or not above 0)"


def _number(claim: ClaimSettings, value: float, unit: str, half: float | None) -> str:
    if claim.of_a_ratio:
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    if claim.measure == "percent":
        return f"{units.signed(value - 1, '%', half)}%"
    return units.text(value, unit, half) if claim.over is None else units.signed(value, unit, half)
