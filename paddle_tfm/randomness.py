"""Counter-based random numbers: every draw is a function of a key, such as (seed, purpose or parameter path, step).

No draw depends on how many were made before it. Two variants of one seed therefore start from the same values and see
the same batches, a resumed run continues exactly, and the number of workers changes nothing. The idea is that of Salmon
et al. 2011 (Parallel random numbers: as easy as 1, 2, 3); here the key is hashed into the seed of one of NumPy's
generators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np


class RandomContext(NamedTuple):
    """What the draws of layers are keyed by, besides their own path: the run's seed, the optimizer step, and the
    micro-batch within it. This process has the `rows` rows of that micro-batch from `first_row` on."""

    seed: int
    step: int
    micro_batch: int = 0
    first_row: int = 0
    rows: int = 1


_context: ContextVar[RandomContext | None] = ContextVar("paddle_tfm_random_context", default=None)


def digest(*key: object) -> int:
    """A 64-bit integer that depends on every part of `key` and on nothing else."""
    text = "\x1f".join(str(part) for part in key)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(*key: object) -> np.random.Generator:
    """A NumPy generator whose stream is a function of `key`, such as ``(seed, "initial", "decoder.0.norm.weight")``."""
    word = digest(*key)
    return np.random.Generator(np.random.SFC64([word & 0xFFFFFFFF, word >> 32]))


def bits(count: int, offset: int, *key: object) -> np.ndarray:
    """`count` numbers uint16 from the stream of `key`, from number `offset` on; those before it cost nothing. A process
    that has a shard of a batch so gets the numbers that it would get for the whole."""
    word, remainder = digest(*key), offset % 4
    source = np.random.PCG64([word & 0xFFFFFFFF, word >> 32])
    source.advance(offset // 4)
    raw = source.random_raw(-(-(remainder + count) // 4))
    return raw.astype("<u8", copy=False).view("<u2")[remainder : remainder + count]


@contextmanager
def random_context(
    seed: int, step: int, micro_batch: int = 0, first_row: int = 0, rows: int = 1
) -> Iterator[RandomContext]:
    """Within this block, draws made by layers (dropout, randomized positions) are keyed by this `RandomContext`."""
    context = RandomContext(seed, step, micro_batch, first_row, rows)
    token = _context.set(context)
    try:
        yield context
    finally:
        _context.reset(token)


def current_context() -> RandomContext | None:
    """The `RandomContext` of the innermost block, or None outside all (a layer used on its own)."""
    return _context.get()
