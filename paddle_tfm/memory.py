"""The memory of this machine: how much can be taken, and a refusal of what would fill it.

The system grants more than there is, and ends a process, this one or another, when it is used: whoever is about to take
very much asks before.
"""

from __future__ import annotations

import math
from pathlib import Path

MUCH = 1 << 28  # bytes; of less nobody asks the system


def free() -> float:
    """Bytes that can be taken; as many as one likes where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return math.inf


def require(size: int, what: str) -> None:
    """Raises MemoryError, as an allocation that fails does, where `what` needs more bytes than are free."""
    if size > MUCH and size > (available := free()):
        raise MemoryError(f"{what} needs {size / 1e9:,.1f} GB, but {available / 1e9:,.1f} GB are free")
