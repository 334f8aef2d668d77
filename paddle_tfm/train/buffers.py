"""Buffers of a model, running statistics for instance, which a pass changes: put back to what they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import paddle
from paddle import Tensor


def remembered(buffers: Iterable[Tensor]) -> Callable[[], None]:
    """A function that sets these buffers to what they are now."""
    copies = [(buffer, buffer.clone()) for buffer in buffers]

    def restore() -> None:
        for buffer, copy in copies:
            paddle.assign(copy, output=buffer)

    return restore


@contextmanager
def undone(buffers: Iterable[Tensor]) -> Iterator[None]:
    """After this block these buffers are what they were before."""
    restore = remembered(buffers)
    try:
        yield
    finally:
        restore()
