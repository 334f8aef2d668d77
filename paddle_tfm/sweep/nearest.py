"""The whole number at which a growing quantity, or a growing sum, is nearest to what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class Unreachable(Exception):
    """The quantity does not change with the number, or is not to be had within its bounds: `value` at `number` is as
    near as it comes."""

    def __init__(self, number: int, value: float):
        self.number, self.value = number, value
        super().__init__(f"{value:g} at {number}")


def nearest(
    quantity: Callable[[int], float], wanted: float, start: int, step: int = 1, most: int = 2**20
) -> tuple[int, float]:
    """The multiple of `step`, at least one and at most `most`, whose `quantity` is nearest to `wanted`, and what it is
    there. A quantity that is a line is asked about five times: between two numbers that hold it, the next one asked is
    where a line would have it, and half way where that was of little use.

    Raises:
        Unreachable: all numbers are on one side of it.
    """
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in known:
            known[place] = quantity(place * step)
        return known[place]

    low = high = max(1, start // step)
    last = most // step
    while at(high) < wanted and high < last:
        low, high = high, min(2 * high, last)
        if at(high) <= at(low):
            raise Unreachable(high * step, at(high))
    while at(low) > wanted and low > 1:
        low, high = max(1, low // 2), low
        if at(low) >= at(high):
            raise Unreachable(low * step, at(low))
    if not at(low) <= wanted <= at(high):
        place = min((low, high), key=lambda each: abs(at(each) - wanted))
        raise Unreachable(place * step, at(place))
    halve = False
    while high - low > 1:
        share = (wanted - at(low)) / ((at(high) - at(low)) or 1.0)
        middle = (low + high) // 2 if halve else round(low + share * (high - low))
        middle = min(max(middle, low + 1), high - 1)
        width = high - low
        low, high = (middle, high) if at(middle) <= wanted else (low, middle)
        halve = not halve and high - low > width // 2
    place = min((low, high), key=lambda each: abs(at(each) - wanted))
    return place * step, at(place)


def nearest_sum(parts: Iterator[int], wanted: float) -> tuple[int, int]:
    """After how many of `parts`, one at least and each above 0, their sum is nearest to `wanted`, and what it is
    there; of two that are equally near, the larger."""
    number, before, after = 0, 0, 0
    while after < wanted or not number:
        number, before, after = number + 1, after, after + next(parts)
    return (number, after) if number == 1 or after - wanted <= wanted - before else (number - 1, before)
