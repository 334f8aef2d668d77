"""A scale of numbers: where a value stands, which values are named beside it, and both on a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from itertools import pairwise

LOG_RANGE = 10  # the largest value over the smallest, from which a quantity is shown on a logarithmic scale
MAX_TICKS = 6
MAX_PLACES = 16
LEAST_DIGITS = 6


@dataclass(frozen=True)
class Axis:
    """The values from `low` to `high`, linear or logarithmic."""

    low: float
    high: float
    log: bool = False

    @property
    def upright(self) -> bool:
        """Whether the names of its ticks stand upwards, since they would run into each other."""
        return False

    def called(self, value: float) -> str:
        """What a point there is called: a count."""
        return short(value)

    def share(self, value: float) -> float:
        """Where `value` stands: 0 at `low`, 1 at `high`; never beyond."""
        change: Callable[[float], float] = math.log if self.log else float
        low, high = change(self.low), change(self.high)
        return min(1.0, max(0.0, (change(max(value, self.low)) - low) / (high - low)))

    def names(self, name: Callable[..., str]) -> list[str]:
        """What each tick is called: by `name(value, digits=…)` with as many digits as tell each exactly."""
        ticks, digits = self.ticks(), LEAST_DIGITS
        while digits < 15 and any(not math.isclose(float(f"{tick:.{digits}g}"), tick, rel_tol=1e-12) for tick in ticks):
            digits += 1
        return [name(tick, digits=digits) for tick in ticks]

    def ticks(self) -> list[float]:
        """Round values within the axis, at most `MAX_TICKS`."""
        if self.log:
            return _log_ticks(self.low, self.high)
        step = _step(self.high - self.low)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) for number in range(first, last + 1)]


@dataclass(frozen=True)
class Places(Axis):
    """The places 0, 1, … of things in a row, each with its name, which is written upwards where they are many."""

    called_so: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> Places:
        """One place for each name."""
        called_so = tuple(names)
        return cls(-0.5, len(called_so) - 0.5, called_so=called_so)

    def called(self, value: float) -> str:
        """The name of a place."""
        return self.called_so[round(value)]

    @property
    def upright(self) -> bool:
        """As `Axis.upright`."""
        return LETTER * sum(len(name) + 1 for name in self.called_so) > NARROW

    def names(self, name: Callable[..., str]) -> list[str]:
        """Those of the ticks."""
        return [self.called(tick) for tick in self.ticks()]

    def ticks(self) -> list[float]:
        """Each place, or each second, third, …"""
        each = math.ceil(len(self.called_so) / MAX_PLACES)
        return [float(place) for place in range(0, len(self.called_so), each)]


def fit(values: Iterable[float], bounds: tuple[float, float] = (-math.inf, math.inf), log: bool = False) -> Axis:
    """An axis that holds all `values`, its ends round numbers within `bounds`. `log`: logarithmic where they span more
    than a factor of `LOG_RANGE` and none is 0 or less."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = max(min(finite), bounds[0]), min(max(finite), bounds[1])
    if log and low > 0 and high / low > LOG_RANGE:
        return Axis(low * 0.9, high * 1.1, log=True)
    if high - low < 1e-9 * max(1.0, abs(high)):
        room = max(abs(high) * 0.05, 1e-3)
        low, high = max(low - room, bounds[0]), min(high + room, bounds[1])
        high = high if high > low else low + room
    step = _step(high - low) / 2
    return Axis(
        max(math.floor(low / step + 1e-9) * step, bounds[0]), min(math.ceil(high / step - 1e-9) * step, bounds[1])
    )


def _step(width: float) -> float:
    """The least round number of which at most `MAX_TICKS` fit into `width`."""
    rough = width / (MAX_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]
        if len(ticks) <= MAX_TICKS:
            break
    return ticks if len(ticks) <= MAX_TICKS else ticks[:: math.ceil(len(ticks) / MAX_TICKS)]


# ------------------------------------------------------------------------------------------------- axes on a page

SIZE = 1000  # of a drawing's own units, in both directions
NARROW = 20.0  # the width of a drawing on a phone, in sizes of the letters below it
LETTER, GAP = 0.6, 0.6  # the width of a letter, and of what keeps two names apart


def at(share: float) -> str:
    """Where a share of the drawing is, in its units."""
    return f"{share * SIZE:.1f}".rstrip("0").rstrip(".")


def dot(x: float, y: float) -> str:
    """The `d` of a dot at these shares of the drawing: a line of no length with round ends."""
    return f"M{at(x)} {at(y)}h0"


def short(value: float, digits: int = LEAST_DIGITS) -> str:
    """A count as an axis names it: 500, 20k, 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            divisor = 1e3 if letter == "k" else size
            return f"{value / divisor:.{digits}g}{letter}"
    return f"{value:,.{digits}g}"


def xlabels(axis: Axis, name: Callable[..., str]) -> str:
    """The names of an axis' ticks, below a drawing; one at an end stands within it. Those of the class `spare` would
    run into others where the drawing is narrow: each second stays there, or third, …, counted from the last."""
    ticks = [(axis.share(tick), text) for tick, text in zip(axis.ticks(), axis.names(name))]
    if axis.upright:
        spans = "".join(f'<span style="left:{100 * share:.2f}%">{escape(text)}</span>' for share, text in ticks)
        height = LETTER * max(len(text) for _, text in ticks) + GAP
        return f'<div class="xlabels upright" style="height:{height:.1f}em" aria-hidden="true">{spans}</div>'
    boxes = []
    for share, text in ticks:
        width = LETTER * len(text)
        left = share * NARROW - width * {"first": 0.0, "": 0.5, "last": 1.0}[_side(share)]
        boxes.append((left, left + width + GAP))
    last = len(ticks) - 1
    each = next(
        (n for n in range(1, last + 1) if all(a[1] <= b[0] for a, b in pairwise(boxes[last % n :: n]))), last + 1
    )
    spans = ""
    for i, (share, text) in enumerate(ticks):
        kinds = " ".join(filter(None, [_side(share), "spare" if (last - i) % each else ""]))
        spans += f'<span class="{kinds}" style="left:{100 * share:.2f}%">{escape(text)}</span>'
    return f'<div class="xlabels" aria-hidden="true">{spans}</div>'


def _side(share: float) -> str:
    return "first" if share < 0.03 else "last" if share > 0.97 else ""
