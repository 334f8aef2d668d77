"""What a benchmark ran on: the machine, and the versions of the libraries."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path

from paddle_tfm import runtime


def machine() -> dict[str, object]:
    """Processor, cores and system, and the load average of the minute before: other work slows a side of many threads
    more than one of a single thread, so ratios from a busy machine are unreliable."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="ignore").splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    except OSError:
        pass
    return {
        "processor": processor,
        "cores": runtime.physical_cores(),
        "logical_cores": os.cpu_count() or 1,
        "system": platform.platform(),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str]:
    """The versions of the libraries that determine the speed."""
    installed = runtime.installed_paddle()
    others = ("numpy", "torch", "joeynmt", "ctranslate2")
    return {
        "paddle": " ".join(installed) if installed else "missing",
        "paddle_tfm": importlib.metadata.version("paddle-tfm"),
        **{name: importlib.metadata.version(name) for name in others if importlib.util.find_spec(name) is not None},
        "python": platform.python_version(),
    }
