"""The memory of this machine: how much can be taken, and a refusal of what would fill it.

The system grants more than there is, and ends a process, this one or another, when it is used: whoever is about to take
very much asks before.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

from paddle_tfm.language import _

MUCH = 1 << 28  # bytes; of less nobody asks the system
# Of each version of Linux's control groups, by what /proc/self/cgroup calls it: its folder, the files of the bound and
# of what is used of it, and what stands before the names in memory.stat.
GROUPS = {
    "": ("", "memory.max", "memory.current", ""),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
}
NUMBER = re.compile(r"(?:([a-z]\w*):?\s+)?(\d+)(?: kB)?", re.IGNORECASE)  # a line of such a file


def free(system: Path = Path("/")) -> float:
    """Bytes that can be taken: of the machine, and within each bound that a container or a scheduler set; as many as
    one likes where the system, whose files lie below `system`, does not say."""
    machine = _numbers(system / "proc/meminfo").get("MemAvailable", math.inf) * 1024
    return min([machine, *_within_groups(system)])


def _within_groups(system: Path) -> Iterator[float]:
    """What is left in the groups of this process, and in those around them."""
    for line in _lines(system / "proc/self/cgroup"):
        _, version, group = line.split(":", 2)
        if version in GROUPS:
            top, bound, used, prefix = GROUPS[version]
            root = system / "sys/fs/cgroup" / top
            own = Path(os.path.normpath(f"{root}/{group}"))
            for folder in (each for each in (own, *own.parents) if each.is_relative_to(root)):
                most, taken = (_numbers(folder / file).get("") for file in (bound, used))
                if most is not None and taken is not None:
                    kept = _numbers(folder / "memory.stat")
                    # Of files that were read: the system gives that up for whoever needs memory.
                    files = sum(kept.get(f"{prefix}{which}_file", 0) for which in ("active", "inactive"))
                    yield max(0, most - taken + files)


def _numbers(file: Path) -> dict[str, int]:
    """Name → number of a file of the system; of one that is a number alone the name is empty."""
    return {line[1] or "": int(line[2]) for line in map(NUMBER.fullmatch, _lines(file)) if line}


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []


def require(size: int, what: str) -> None:
    """Raises MemoryError, as an allocation that fails does, where `what` needs more bytes than are free."""
    if size > MUCH and size > (available := free()):
        raise MemoryError(
            _("{what} needs {size:,.1f} GB, but {available:,.1f} GB are free").format(
                what=what, size=size / 1e9, available=available / 1e9
            )
        )
