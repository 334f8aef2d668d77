"""The law of randomness: every draw is a function of (seed, purpose or parameter path, step).

No draw depends on how many were made before it, so that two variants of one seed start from the same values and see the
same batches, a resumed run goes on exactly, and the number of workers changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np


class Moment(NamedTuple):
    """Where training stands: the run's seed, the optimizer step, and the micro-batch within it."""

    seed: int
    step: int
    micro: int = 0


_moment: ContextVar[Moment | None] = ContextVar("paddle_tfm_moment", default=None)


def digest(*key: object) -> int:
    """A 64-bit integer that depends on every part of `key` and on nothing else."""
    text = "\x1f".join(str(part) for part in key)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(*key: object) -> np.random.Generator:
    """A NumPy generator whose stream is a function of `key`, such as ``(seed, "initial", "decoder.0.norm.weight")``."""
    word = digest(*key)
    return np.random.Generator(np.random.SFC64([word & 0xFFFFFFFF, word >> 32]))


@contextmanager
def drawing(seed: int, step: int, micro: int = 0) -> Iterator[None]:
    """Within this block, draws made by layers (dropout, randomized positions) belong to this seed and step."""
    token = _moment.set(Moment(seed, step, micro))
    try:
        yield
    finally:
        _moment.reset(token)


def moment() -> Moment | None:
    """The current `Moment`, or None outside `drawing` (a layer used on its own)."""
    return _moment.get()
