"""The table of a benchmark, as Markdown."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.sides import SIDES
from paddle_tfm import runtime

HEADINGS = (
    *("what", "side", "ms", "a second", "ours is", "fastest rounds", "the same", "most memory, MiB"),
    "how it computes",
)


def table(rows: Iterable[tuple[str, Sequence[Row]]]) -> str:
    """The rows of each measurement, beside what was measured."""
    cells = [[what, *_cells(row)] for what, several in rows for row in several]
    return "\n".join(f"| {' | '.join(line)} |" for line in [HEADINGS, ["---"] * len(HEADINGS), *cells])


def _cells(row: Row) -> list[str]:
    ratio = ["", ""]
    if row.side != "ours":
        median, low, high = row.ratio
        ratio = [f"{median:.2f} × ({low:.2f} – {high:.2f})", f"{row.undisturbed:.2f} ×"]
    speed = [f"{row.milliseconds:,.1f}", f"{row.per_second:,.0f}"]
    return [SIDES[row.side].title, *speed, *ratio, row.same, f"{row.peak_mib:,}", how(row.computes)]


def how(computes: Mapping) -> str:
    """How a side computes, as a cell: its processes or threads, its precision, the variables and settings that
    differ from its library as it comes."""
    threads, processes = computes["threads"], computes["processes"]
    parts = [f"{processes} processes" if processes > 1 else f"{threads} thread{'s' if threads > 1 else ''}"]
    parts.append(computes["precision"])
    parts += [f"{name}={value}" for name, value in computes["variables"].items()]
    parts += [computes["settings"]] if computes["settings"] else []
    return ", ".join(parts)


def surroundings() -> str:
    """The machine, how busy it was in the minute before, and the versions: other work slows a side of many threads
    more than one of a single thread."""
    lines = Path("/proc/cpuinfo").read_text(errors="ignore").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    processor = next(names, platform.processor() or platform.machine())
    installed = [name for name in ("numpy", "torch", "joeynmt", "ctranslate2") if importlib.util.find_spec(name)]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("paddle-tfm", *installed)]
    versions += [" ".join(runtime.installed_paddle() or ["no Paddle"]), f"Python {platform.python_version()}"]
    cores, load = runtime.physical_cores(), os.getloadavg()[0]
    return f"{processor}, {cores} cores, load {load:.1f} before; {', '.join(versions)}."
