"""Which line of the author's code has a gradient that cannot be computed: Paddle's error names none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddle import Tensor


def is_of_the_author(file: str) -> bool:
    """Whether code in this file is neither Paddle's nor NumPy's nor ours."""
    return not any(part in file for part in ("/paddle/", "/numpy/", "/paddle_tfm/", "<"))


def backward_line(forward: Callable[[], object]) -> str:
    """ " (file line 5, in the backward pass)" of the first line in `forward` that makes a tensor whose backward pass
    fails; "" where there is none."""
    # Here, so that `paddle_tfm.testing` is imported before Paddle is, and without its messages.
    from paddle import Tensor

    made: list[tuple[str, Tensor]] = []
    known: set[int] = set()

    def note(frame: FrameType, line: int, values: object) -> None:
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, Tensor) and not value.stop_gradient and id(value) not in known:
                known.add(id(value))  # `made` keeps it, so that no other gets its id
                made.append((f"{frame.f_code.co_filename.rsplit('/', 1)[-1]} line {line}", value))

    def enter(frame: FrameType, event: str, argument: object):
        if not is_of_the_author(frame.f_code.co_filename):
            return None
        line = frame.f_lineno
        known.update(id(value) for value in frame.f_locals.values())  # what it was called with

        def step(frame: FrameType, event: str, argument: object):
            nonlocal line
            note(frame, line, list(frame.f_locals.values()))  # of the line before this one
            if event == "return":
                note(frame, line, argument)
            line = frame.f_lineno
            return step

        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        forward()
    finally:
        sys.settrace(before)
    for place, tensor in made:
        try:
            tensor.sum().backward(retain_graph=True)
        except Exception:  # the one that is sought
            return f" ({place}, in the backward pass)"
    return ""
