"""The space that tuning searches: an axis for each setting, and one quasi-random sequence of points in it.

train.schedule.peak: {log: [3e-4, 1e-2]}    # or linear; log_int and int for whole numbers
train.schedule.warmup: [0, 200, 1000]       # or any list of values; numbers that rise have edges
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from paddle_tfm.language import _

SCALES = ("log", "linear", "log_int", "int")
FORMS = "a list of values, {log: [a, b]}, {linear: [a, b]}, {log_int: [a, b]} or {int: [a, b]}"
DIGITS = 4  # of a value between two ends: whoever reads `peak: 0.001873` can type it again
MOST_DRAWS = 1_000  # for a point that is wanted
SEED = 0  # of the sequence's scrambling: the points are of the space alone, and of no run's seed

Point = dict[str, Any]  # dotted path → value


@dataclass(frozen=True)
class Axis:
    """One setting and the values that it may take: `values` of a list, or the two ends of a scale.

    Args:
        scale: one of `SCALES`, or "" for a list.
    """

    path: str
    scale: str
    values: tuple[Any, ...]

    @classmethod
    def parse(cls, path: str, written: object) -> Axis:
        """What a recipe writes.

        Raises:
            ValueError: what is wrong with it.
        """
        if isinstance(written, list):
            if len(written) < 2:
                text = _("has {number} value, so that nothing can be chosen; write two or more")
                raise ValueError(text.format(number=len(written) or _("no")))
            if twice := [each for number, each in enumerate(written) if each in written[:number]]:
                raise ValueError(_("has the value {twice!r} twice").format(twice=twice[0]))
            return cls(path, "", tuple(written))
        if not isinstance(written, Mapping) or len(written) != 1 or next(iter(written)) not in SCALES:
            broken = isinstance(written, str) and written.startswith(tuple(f"{scale}(" for scale in SCALES))
            hint = _("; YAML would divide log(a, b) at its comma") if broken else ""
            text = _("must be {forms}, but is {written!r}{hint}")
            raise ValueError(text.format(forms=_(FORMS), written=written, hint=hint))
        ((scale, ends),) = written.items()
        numbers = isinstance(ends, list) and all(type(each) in (int, float) for each in ends)
        if not numbers or len(ends) != 2:
            text = _("must have two numbers as its ends, as {{{scale}: [1, 10]}}, but has {ends!r}")
            raise ValueError(text.format(scale=scale, ends=ends))
        axis = cls(path, scale, tuple(ends))
        axis._require_range(ends)
        return axis

    def _require_range(self, ends: list) -> None:
        low, high = ends
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            text = _("must go from a smaller number to a larger one, but goes from {low} to {high}")
            raise ValueError(text.format(low=low, high=high))
        if self.is_log and low <= 0:
            raise ValueError(_("must begin above 0, as it is logarithmic, but begins at {low}").format(low=low))
        if self.is_whole and not all(isinstance(end, int) for end in ends):
            text = _("must have whole numbers as its ends, but goes from {low} to {high}")
            raise ValueError(text.format(low=low, high=high))

    @property
    def is_log(self) -> bool:
        """Whether equal shares of it are equal ratios."""
        return self.scale.startswith("log")

    @property
    def is_whole(self) -> bool:
        """Whether its values are the whole numbers between its ends."""
        return self.scale.endswith("int")

    @property
    def size(self) -> float:
        """How many values it has."""
        if not self.scale:
            return len(self.values)
        return float(self.values[1] - self.values[0] + 1) if self.is_whole else math.inf

    def written(self) -> object:
        """As a recipe writes it."""
        return {self.scale: list(self.values)} if self.scale else list(self.values)

    def __str__(self) -> str:
        """For people: `0.0003 to 0.01 (log)`, or `0, 200 or 1000`."""
        if not self.scale:
            *firsts, last = map(str, self.values)
            return f"{', '.join(firsts)} or {last}"
        return f"{self.values[0]:g} to {self.values[1]:g} ({self.scale.removesuffix('_int')})"

    def at(self, share: float) -> Any:
        """The value at a share of the axis, 0 ≤ share < 1."""
        if not self.scale:
            return self.values[int(share * len(self.values))]
        low, high = self.values
        end = high + 1 if self.is_whole else high
        value = low * (end / low) ** share if self.is_log else low + (end - low) * share
        return min(int(value), high) if self.is_whole else float(f"{value:.{DIGITS}g}")

    def holds(self, value: Any) -> bool:
        """Whether it is one of the values."""
        return self.values[0] <= value <= self.values[1] if self.scale else value in self.values

    def edge(self, value: Any, tried: Iterable[Any]) -> int:
        """Where a value stands: −1 or 1 where nothing below or above it was tried, 0 elsewhere and on a list without
        an order."""
        if not self._is_ordered():
            return 0
        known = list(self.values) if not self.scale else list(tried)
        return -1 if value <= min(known) else 1 if value >= max(known) else 0

    def _is_ordered(self) -> bool:
        if self.scale:
            return True
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in self.values)
        return numbers and all(one < other for one, other in pairwise(self.values))

    def widened(self, side: int) -> Axis:
        """Wider below (−1) or above (1): by half of its width, or of a list by one value as far as the last two are
        apart. Nothing becomes negative that was not: an axis that begins at 0 stays as it is."""
        first, second = self.values[:2] if side < 0 else (self.values[-1], self.values[-2])
        ratio = self.is_log or (not self.scale and first > 0 and second > 0)
        share = 0.5 if self.scale else 1.0
        beyond = first * (first / second) ** share if ratio else first + (first - second) * share
        if side < 0 <= first:
            beyond = max(beyond, 0)
        whole = self.is_whole or (not self.scale and all(isinstance(value, int) for value in self.values))
        beyond = round(beyond) if whole else float(f"{beyond:.{DIGITS}g}")
        if self.is_log and beyond <= 0:
            beyond = 1  # of whole numbers, the smallest that has a logarithm
        if beyond == first:
            return self
        kept = self.values if not self.scale else self.values[1:] if side < 0 else self.values[:1]
        return replace(self, values=(beyond, *kept) if side < 0 else (*kept, beyond))


def size(space: Sequence[Axis]) -> float:
    """How many points there are."""
    return math.prod(axis.size for axis in space)


def points(space: Sequence[Axis], count: int, beyond: Sequence[Axis] = ()) -> list[Point]:
    """The first `count` points of the scrambled Halton sequence (arXiv:1706.03200) in a space, each once; of a space
    that was widened those outside of the one before, `beyond`. Fewer where there are no more. Equal spaces have equal
    points, on every machine and for every variant."""
    import numpy as np
    from scipy.stats import qmc  # it takes a second to load

    sequence = qmc.Halton(len(space), scramble=True, seed=np.random.default_rng(SEED))
    count = int(min(count, size(space) - (size(beyond) if beyond else 0)))
    new: list[Point] = []
    for _draw in range(MOST_DRAWS * count):
        if len(new) == count:
            break
        shares = sequence.random(1)[0]
        point = {axis.path: axis.at(float(share)) for axis, share in zip(space, shares)}
        if point not in new and not (beyond and all(axis.holds(point[axis.path]) for axis in beyond)):
            new.append(point)
    return new
