"""How a component's numbers differ from a reference's, in words: what a formula that is nearly right has done."""

from __future__ import annotations

import numpy as np

OTHER = "another formula: no factor, constant, order or shift makes one of the other; compare them term by term"
NEAR = 1e-5  # of the largest number: what counts as the same under a factor, an order or a shift


def explained(ours: np.ndarray, expected: np.ndarray, real: np.ndarray) -> str:
    """What makes the one of the other: a factor, constant, order or shift, or that it is none of these. `real`: which
    numbers count. "" where they are too few, or not finite: those have no explanation."""
    if real.sum() < 2 or not (np.isfinite(ours[real]).all() and np.isfinite(expected[real]).all()):
        return ""
    near = NEAR * max(1e-12, float(np.abs(expected[real]).max()))
    a, b = ours[real], expected[real]
    factor = float(a @ b / max(1e-30, b @ b))
    if np.ptp(b) > near and np.abs(a - factor * b).max() <= near * max(1.0, abs(factor)) and abs(factor) > NEAR:
        if abs(factor + 1.0) < NEAR:
            return "it is the reference with the opposite sign"
        return f"it is {factor:.4g} times the reference: a factor is missing, or stands there twice"
    if np.ptp(b) > near and np.ptp(a - b) <= near:
        return f"it is the reference and {float((a - b).mean()):.4g}: a constant is missing, or is there once too often"
    for axis in range(ours.ndim if real.all() else 0):
        if sentence := _in_another_order(np.moveaxis(ours, axis, 0), np.moveaxis(expected, axis, 0), near):
            return f"along axis {axis} of {list(ours.shape)} {sentence}"
    return OTHER


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
