"""One side of the benchmark in its own process, which reads requests from its standard input.

Requests and answers are JSON, one per line. ``{"load": folder}`` is answered with facts about this side and its first
loss; ``{"first": n, "steps": k}`` does k steps, the first on batch n, and is answered with the seconds of each. If the
first request has `decoding`, ``{"decode": job}`` does a job of `decode.JOBS` and is answered with its seconds and
outputs. A side imports its own library only: that of PyTorch never loads Paddle.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

if sys.platform != "win32":
    import resource

from paddle_tfm import runtime
from paddle_tfm.bench.sides import KINDS, PEERS_HELP, tuning
from paddle_tfm.bench.workload import Workload
from paddle_tfm.errors import UserError


class Side(Protocol):
    """A side that trains."""

    def first_loss(self) -> float:
        """The loss of the first batch, in nats per target token, without dropout."""

    def step(self, number: int) -> None:
        """One step on batch `number`, modulo the number of batches; returns when it is complete."""


class Decoder(Protocol):
    """A side that decodes."""

    def decode(self, job: str) -> list[list[int]]:
        """The ids of the best output of each sentence, without the end token."""


class Answer(NamedTuple):
    """The answer to a request: its `value`, or an `error`, a sentence for the user."""

    value: dict | None = None
    error: str | None = None


def load(side: str, folder: Path) -> tuple[Side, dict]:
    """A side, and facts about it for the report. Ours is loaded first and writes the workload of the others."""
    if KINDS[side].package == "paddle":
        runtime.load_paddle()
    loaded: Side
    facts: dict = {}
    if side in ("ours", "ours-bfloat16"):
        from paddle_tfm.bench import ours

        loaded = engine = ours.Side(folder, side)
        if side == "ours":
            engine.workload().write(folder)
        facts = engine.facts()
        engine.begin()
    else:
        loaded = load_peer(side, Workload.read(folder))
    facts |= {"loaded_mib": peak_memory(), "first_loss": loaded.first_loss()}
    return loaded, facts | described(side, loaded)


def described(side: str, loaded: object) -> dict:
    """How a side computes: its threads and processes, the precision of its products, the variables that tune its
    library (those that `runtime.prepare` set here count only where it prepares), and its settings in words."""
    ours = {setting.name for setting in runtime.SETTINGS if not setting.by_user and not KINDS[side].prepared}
    return {
        "threads": int(os.environ.get("OMP_NUM_THREADS", 1)),
        "processes": 1 + len(getattr(loaded, "workers", ())),
        "precision": getattr(loaded, "precision", "float32"),
        "variables": tuning({name: value for name, value in os.environ.items() if name not in ours}),
        "settings": getattr(loaded, "settings", ""),
    }


def load_peer(side: str, workload: Workload) -> Side:
    """A side that is not ours."""
    if KINDS[side].package == "paddle":
        from paddle_tfm.bench import paddle_nn

        return paddle_nn.Side(workload)
    if side == "joeynmt":
        from paddle_tfm.bench import joeynmt

        return joeynmt.Side(workload)
    if side == "torch-tuned":
        from paddle_tfm.bench import tuned

        return tuned.Side(workload)
    from paddle_tfm.bench import pytorch

    return pytorch.Side(workload, compiled=side == "torch-compile")


def load_decoder(side: str, folder: Path, request: dict) -> tuple[Decoder, dict]:
    """A side that decodes, and facts about it for the report. Ours is loaded first and writes the workload of the
    others."""
    loaded: Decoder
    facts: dict = {}
    if side == "joeynmt":
        from paddle_tfm.bench import joeynmt

        loaded = joeynmt.Decoder(Workload.read(folder), request)
    elif side == "torch-tuned":
        from paddle_tfm.bench import tuned

        loaded = tuned.Decoder(Workload.read(folder), request)
    elif side == "ctranslate2":
        from paddle_tfm.bench import ctranslate2

        loaded = ctranslate2.Decoder(Workload.read(folder), request)
    else:
        runtime.load_paddle()
        from paddle_tfm.bench import ours

        loaded = engine = ours.Decoder(request, side)
        facts = engine.facts()
        if side == "ours":
            engine.workload().write(folder)
    return loaded, facts | described(side, loaded)


def peak_memory(workers: Sequence[int] = ()) -> int | None:
    """The peak memory of this process in MiB; None where the system does not report it (Windows). With `workers`, the
    ids of its worker processes: the memory that all of them hold now, shared pages counted once; that is the peak too,
    because they keep freed memory."""
    if sys.platform == "win32":
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # bytes in a unit of `ru_maxrss`
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    held = sum(_proportional(pid) for pid in (os.getpid(), *workers)) if workers else 0
    return round(max(own, held) / 2**20)


def _proportional(pid: int) -> int:
    """The bytes that a process holds, each page divided by the number of processes that hold it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main(side: str) -> None:
    """Answer requests until the input ends. What libraries print goes to the log, not between the answers."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        trainee: Side | None = None
        decoder: Decoder | None = None
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if "decoding" in request:
                    decoder, facts = load_decoder(side, Path(request["load"]), request["decoding"])
                    answer = Answer(facts)
                elif "load" in request:
                    trainee, facts = load(side, Path(request["load"]))
                    answer = Answer(facts)
                elif "decode" in request and decoder is not None:
                    start = time.perf_counter()
                    ids = decoder.decode(request["decode"])
                    answer = Answer({"seconds": time.perf_counter() - start, "ids": ids})
                elif "steps" in request and trainee is not None:
                    seconds = _timed(trainee, request["first"], request["steps"])
                    answer = Answer({"seconds": seconds, "peak_mib": peak_memory(getattr(trainee, "workers", ()))})
                else:
                    raise ValueError(f"the first request must say what to `load`, but is {line.strip()}")
            except UserError as error:
                answer = Answer(error=str(error))
            except ImportError as error:  # the library is there, and one that it needs is not
                answer = Answer(error=f"the side '{side}' cannot be loaded: {error}. {PEERS_HELP}")
            out.write(json.dumps(answer._asdict()) + "\n")
            out.flush()


def _timed(side: Side, first: int, steps: int) -> list[float]:
    seconds = []
    for number in range(first, first + steps):
        start = time.perf_counter()
        side.step(number)
        seconds.append(time.perf_counter() - start)
    return seconds
