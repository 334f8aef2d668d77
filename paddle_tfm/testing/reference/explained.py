"""What makes of a component's numbers those of a reference, and where both are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import paddle

from paddle_tfm.testing.reference.case import Case
from paddle_tfm.testing.results import some

OTHER = "another formula: no factor, constant, order or shift makes one of the other"
NEAR = 1e-5  # of the largest number: what counts as the same under a factor, an order or a shift
LEFT = 0.1  # of the difference that an explanation may leave

Numbers = Sequence[np.ndarray] | np.ndarray


def explained(ours: np.ndarray, expected: np.ndarray, real: np.ndarray) -> str:
    """What makes the one of the other: a factor, constant, order or shift, or that it is none of these. `real`: which
    numbers count. "" where they are too few, or not finite: those have no explanation."""
    if real.sum() < 2 or not (np.isfinite(ours[real]).all() and np.isfinite(expected[real]).all()):
        return ""
    a, b = ours[real], expected[real]
    near = min(NEAR * max(1e-12, float(np.abs(b).max())), LEFT * float(np.abs(a - b).max()))
    factor = float(a @ b / max(1e-30, b @ b))
    if np.ptp(b) > near and np.abs(a - factor * b).max() <= near * max(1.0, abs(factor)) and abs(factor) > NEAR:
        if abs(factor + 1.0) < NEAR:
            return "it is the reference with the opposite sign"
        number = f"{factor:.4g}" if abs(factor - 1.0) > 1e-3 else f"{factor:.9g}"
        return f"it is {number} times the reference: a factor is missing, or stands there twice"
    if np.ptp(b) > near and np.ptp(a - b) <= near:
        return f"it is the reference and {float((a - b).mean()):.4g}: a constant is missing, or is there once too often"
    if sentence := _but_for_constants(ours, expected, real, near):
        return sentence
    for axis in range(ours.ndim if real.all() else 0):
        if sentence := _in_another_order(np.moveaxis(ours, axis, 0), np.moveaxis(expected, axis, 0), near):
            return f"along axis {axis} of {list(ours.shape)} {sentence}"
        if sentence := _by_factors(np.moveaxis(ours, axis, 0), np.moveaxis(expected, axis, 0), near):
            return f"along axis {axis} of {list(ours.shape)} {sentence}"
    return OTHER


def _but_for_constants(ours: np.ndarray, expected: np.ndarray, real: np.ndarray, near: float) -> str:
    """Whether it is a number times the other and a constant in each slice of the last axis, as after a bias."""
    if not ours.ndim >= 2 or not (rows := real.all(-1)).sum() > 2:
        return ""
    one, other = (numbers[rows] - numbers[rows].mean(0) for numbers in (ours, expected))
    factor = float((one * other).sum() / max(1e-30, (other * other).sum()))
    if abs(factor) < NEAR or np.abs(one - factor * other).max() > near * max(1.0, abs(factor)):
        return ""
    return f"what is added aside, it is {factor:.4g} times the reference"


def _by_factors(ours: np.ndarray, expected: np.ndarray, near: float) -> str:
    """Whether each slice along the first axis is a number of its own times the other's; "" where they are not."""
    one, other = ours.reshape(len(ours), -1), expected.reshape(len(ours), -1)
    if one.shape[1] < 3 or len(one) < 2:
        return ""
    factors = (one * other).sum(1) / np.maximum(1e-30, (other * other).sum(1))
    if np.abs(one - factors[:, None] * other).max() > near or (np.abs(factors) < NEAR).any():
        return ""
    return f"it is the reference times a number for each: {some(f'{factor:.4g}' for factor in factors)}"


def _in_another_order(ours: np.ndarray, expected: np.ndarray, near: float) -> str:
    """Whether slices along the first axis are those of the other in another order, or shifted; "" where they are
    not."""
    count = len(ours)
    if count < 2:
        return ""
    one, other = ours.reshape(count, -1), expected.reshape(count, -1)
    same = np.abs(one[:, None] - other[None]).max(-1) <= near  # [of ours, of the reference]
    if same.any(1).all() and same.any(0).all():
        order = same.argmax(1).tolist()
        if sorted(order) == list(range(count)):
            return f"it has what the reference has in the order {order}: heads, groups or channels cut in another way"
    for step in (1, -1):
        if count > 2 and np.diagonal(same, step).all():
            return f"it has at i what the reference has at i {'+' if step > 0 else '-'} 1: an index that is one off"
    return ""


def where_same(case: Case, off: np.ndarray, real: np.ndarray, theirs: Callable[[dict], np.ndarray]) -> str:
    """At which heads, channels, positions or distances no number differs, in words; "" where nowhere, or where the
    axes of the output are not known. `off`: which numbers do; `real`: which count. `theirs`: of the reference, for what
    must be asked."""
    parts = []
    for axis, name in enumerate(case.axes):
        if name not in ("query", "key"):
            parts.append(_same(name + "{s}", np.moveaxis(off, axis, 0), np.moveaxis(real, axis, 0)))
    if case.axes[-2:] == ("query", "key"):
        at = np.asarray(case.facts["at"])
        apart = at[:, None] - at[None]
        for name, sign in (("distance{s} back", 1), ("distance{s} ahead", -1)):
            distances = np.unique(apart[apart * sign >= 0] * sign)
            ways = [np.broadcast_to(apart * sign == distance, off.shape) for distance in distances]
            parts.append(_same(name, [off & way for way in ways], [real & way for way in ways], distances.tolist()))
    if {"q", "k"} <= case.inputs.keys():
        parts.append(_channels(case, theirs))
    return "; ".join(text for text in parts if text)


def _same(name: str, off: Numbers, real: Numbers, numbers: Sequence[int] | None = None) -> str:
    """`heads 0, 1 of 4`, `positions 0 to 7 of 70`; "" where all of them, or none, are the same."""
    counted = [i for i, counts in enumerate(real) if counts.any()]
    same = [i for i in counted if not off[i].any()]
    names = [i if numbers is None else numbers[i] for i in same]
    if len(same) in (0, len(counted)) or (numbers is not None and names == [0]):
        return ""
    return f"{name.format(s='s' if len(same) > 1 else '')} {some(_runs(names))} of {len(counted)}"


def _runs(numbers: Sequence[int]) -> list[str]:
    """`0 to 7`, `9`: numbers that follow each other as one."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]


def _channels(case: Case, theirs: Callable[[dict], np.ndarray]) -> str:
    """Which channels of queries and keys, each alone, give the same."""
    width, same = case.inputs["q"].shape[-1], []
    for channel in range(width):
        only = np.arange(width) == channel
        inputs = {n: value * only if n in ("q", "k") else value for n, value in case.inputs.items()}
        ours = case.ours({n: paddle.to_tensor(value) for n, value in inputs.items()}).numpy()
        expected = theirs(inputs)
        if np.abs(ours - expected).max() <= NEAR * max(1e-12, np.abs(expected).max()):
            same.append(channel)
    return _same("channel{s}", [np.array([i not in same]) for i in range(width)], [np.array([True])] * width)
