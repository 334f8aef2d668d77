"""What another process of the same program would have otherwise: hashes of texts, and the global random states."""

from __future__ import annotations

import builtins
import contextlib
import random
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def as_in_another_process() -> Iterator[None]:
    """Within this block hashes of texts are others, as Python draws them for each process, and the global random
    states too."""
    usual, states = builtins.hash, (random.getstate(), np.random.get_state())

    def other_hash(value: object) -> int:
        if isinstance(value, tuple):  # such as (seed, path): its hash is made of theirs
            return usual(tuple(other_hash(part) for part in value))
        return usual(("another process", value)) if isinstance(value, (str, bytes)) else usual(value)

    builtins.hash = other_hash
    random.seed(4321)
    np.random.seed(4321)
    try:
        yield
    finally:
        builtins.hash = usual
        random.setstate(states[0])
        np.random.set_state(states[1])
