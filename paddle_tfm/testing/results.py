"""What a check returns, and the comparison of numbers that most checks end with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

NOT_FINITE = "numbers that are not finite"
CLOSE = 5e-5  # float32: what two orders of the same sums may differ by, of the largest number


@dataclass(frozen=True)
class Passed:
    """The invariant holds."""


@dataclass(frozen=True)
class Note:
    """The invariant holds, and the text is worth knowing."""

    text: str


@dataclass(frozen=True)
class Skip:
    """The check does not apply; the text says why."""

    text: str


@dataclass(frozen=True)
class Failed:
    """The invariant does not hold; the text says what was seen, `names` which parameters are at fault, if some are;
    `raised`: an error ended the check."""

    text: str
    names: tuple[str, ...] = ()
    raised: bool = False


Result = Passed | Note | Skip | Failed


class ComponentError(Exception):
    """The component under test computed what no check can compare: another shape, or numbers that are not finite."""


SHOWN = 3  # names of a list, where they are more


def some(names: Iterable[object]) -> str:
    """`a, b`; of more than four names `a, b, c and 5 more`."""
    words = list(map(str, names))
    if len(words) <= SHOWN + 1:
        return ", ".join(words)
    return f"{', '.join(words[:SHOWN])} and {len(words) - SHOWN} more"


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """max |a − b| / max(1, max |a|).

    Raises:
        ComponentError: their shapes differ, or numbers are not finite.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise ComponentError(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    if not a.size:
        return 0.0
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ComponentError(NOT_FINITE)
    return float(np.abs(a - b).max() / max(1.0, np.abs(a).max()))


def relative_distance(a: np.ndarray, b: np.ndarray) -> float:
    """max |a − b| / max |a|, however small that is."""
    return float(np.abs(a - b).max() / max(1e-30, np.abs(a).max()))


def difference(a: np.ndarray, b: np.ndarray, what: str, tolerance: float = CLOSE) -> Failed | None:
    """Failed, with the distance, where two arrays that must be the same differ by more than rounding; else None.

    Raises:
        ComponentError: see `distance`.
    """
    try:
        size = distance(a, b)
    except ComponentError as error:
        return Failed(f"{what}: {error}")
    return None if size <= tolerance else Failed(f"{what}: they differ by {size:.2g} of the largest number")


def wrong_shape(tensor, shape: list[int], dtype: str | None, what: str) -> Failed | None:
    """Failed where a tensor is not of this shape and (None: any) dtype; else None."""
    name = str(tensor.dtype).removeprefix("paddle.")
    if list(tensor.shape) != list(shape):
        return Failed(f"{what} is {list(tensor.shape)} instead of {list(shape)}")
    if dtype is not None and name != dtype:
        return Failed(f"{what} is {name} in a {dtype} model")
    return None
