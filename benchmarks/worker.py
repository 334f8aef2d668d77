"""One side of a benchmark in its own process. Its first answer says what it is; then each request on its standard
input, ``[job, number of the turn]``, is answered with the turn's seconds and outputs: JSON, one per line. A side
imports its own library only: that of PyTorch never loads Paddle.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.sides import PEERS_HELP, SIDES, tuning
from paddle_tfm import runtime
from paddle_tfm.errors import UserError


def main(side: str, what: str, folder: str) -> None:
    """Answer requests until the input ends. What libraries print goes to the log, not between the answers."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)

        def answer(value: dict) -> None:
            out.write(json.dumps(value) + "\n")
            out.flush()

        try:
            if SIDES[side].module in ("ours", "paddle_nn"):
                runtime.load_paddle()
            library = importlib.import_module(f"benchmarks.libraries.{SIDES[side].module}")
            loaded = getattr(library, what)(Path(folder), side)
            answer({**computes(side, loaded), **loaded.facts()})
        except UserError as error:
            answer({"error": str(error)})
            return
        except ImportError as error:  # the library is there, and one that it needs is not
            answer({"error": f"the side '{side}' cannot be loaded: {error}. {PEERS_HELP}"})
            return
        for line in sys.stdin:
            job, number = json.loads(line)
            start = time.perf_counter()
            outputs = loaded.turn(job, number)
            seconds = time.perf_counter() - start
            answer({"seconds": seconds, "outputs": outputs, "peak_mib": peak_memory(getattr(loaded, "workers", ()))})


def computes(side: str, loaded: object) -> dict:
    """How a side computes: its threads and processes, the precision of its products, the variables that tune its
    library (those that `runtime.prepare` set here count only where it prepares), and its settings in words."""
    ours = {setting.name for setting in runtime.SETTINGS if not setting.by_user and not SIDES[side].prepared}
    return {
        "threads": int(os.environ.get("OMP_NUM_THREADS", 1)),
        "processes": 1 + len(getattr(loaded, "workers", ())),
        "precision": getattr(loaded, "precision", "float32"),
        "variables": tuning({name: value for name, value in os.environ.items() if name not in ours}),
        "settings": getattr(loaded, "settings", ""),
    }


def peak_memory(workers: Sequence[int] = ()) -> int:
    """The peak memory of this process in MiB. With `workers`, the ids of its worker processes: the memory that all of
    them hold now, shared pages counted once; that is the peak too, because they keep freed memory."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes in a unit of `ru_maxrss`
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    held = sum(_proportional(pid) for pid in (os.getpid(), *workers)) if workers else 0
    return round(max(own, held) / 2**20)


def _proportional(pid: int) -> int:
    """The bytes that a process holds, each page divided by the number of processes that hold it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
