"""One side of the benchmark in a process of its own, which reads over its standard input what to do.

Questions and answers are JSON, one a line: ``{"load": folder}`` answers what this side is and its first loss;
``{"first": n, "steps": k}`` makes k steps beginning with batch n and answers the seconds of each. With `decoding` in
the first question, ``{"decode": job}`` does a job of `decode.JOBS` and answers its seconds and outputs. What a side
imports is its own affair: that of PyTorch never loads Paddle.
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

from paddle_tfm.bench.step import SIDES
from paddle_tfm.bench.workload import Workload
from paddle_tfm.errors import UserError
from paddle_tfm.runtime import load_paddle


class Side(Protocol):
    """One of those that are measured."""

    def first_loss(self) -> float:
        """The loss of the first batch, in nats a target token, free of dropout."""

    def step(self, number: int) -> None:
        """One step, to its end, on the batch of that number, counted round and round."""


class Decoder(Protocol):
    """One of those that decode."""

    def decode(self, job: str) -> list[list[int]]:
        """The ids of the best output of each sentence, without the end."""


class Answer(NamedTuple):
    """What goes back: `value`, or in `refused` a sentence for the user."""

    value: dict | None = None
    refused: str | None = None


def load(side: str, folder: Path) -> tuple[Side, dict]:
    """A side, and what the report says of it. Ours comes first and writes what the others read."""
    if SIDES[side] == "paddle":
        load_paddle()
    loaded: Side
    facts: dict = {}
    if side == "ours":
        from paddle_tfm.bench import ours

        loaded = engine = ours.Side(folder)
        engine.workload().write(folder)
        facts = engine.facts()
        engine.begin()
    else:
        loaded = load_peer(side, Workload.read(folder))
    threads, loaded_mib = int(os.environ.get("OMP_NUM_THREADS", 1)), most_memory()
    return loaded, {**facts, "loaded_mib": loaded_mib, "first_loss": loaded.first_loss(), "threads": threads}


def load_peer(side: str, workload: Workload) -> Side:
    """A side that is not ours."""
    if SIDES[side] == "paddle":
        from paddle_tfm.bench import paddle_nn

        return paddle_nn.Side(workload)
    if side == "joeynmt":
        from paddle_tfm.bench import joeynmt

        return joeynmt.Side(workload)
    from paddle_tfm.bench import pytorch

    return pytorch.Side(workload, compiled=side == "torch-compile")


def load_decoder(side: str, folder: Path, request: dict) -> tuple[Decoder, dict]:
    """A side that decodes, and what the report says of it. Ours comes first and writes what the others read."""
    loaded: Decoder
    facts: dict = {}
    if side == "joeynmt":
        from paddle_tfm.bench import joeynmt

        loaded = joeynmt.Decoder(Workload.read(folder), request)
    elif side == "ctranslate2":
        from paddle_tfm.bench import ctranslate2

        loaded = ctranslate2.Decoder(Workload.read(folder), request)
    else:
        load_paddle()
        from paddle_tfm.bench import ours

        loaded = engine = ours.Decoder(request, cached=side == "ours")
        facts = engine.facts()
        if side == "ours":
            engine.workload().write(folder)
    return loaded, {**facts, "threads": int(os.environ.get("OMP_NUM_THREADS", 1))}


def most_memory(workers: Sequence[int] = ()) -> int | None:
    """MiB that this process has held at most so far; None where the system does not tell (Windows). With `workers`, the
    processes that share its work: what it and they hold now, what they share counted once; that is the most too, as
    they keep what they have freed."""
    if sys.platform == "win32":
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # of bytes
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    held = sum(_proportional(pid) for pid in (os.getpid(), *workers)) if workers else 0
    return round(max(own, held) / 2**20)


def _proportional(pid: int) -> int:
    """Bytes that a process holds, each page divided by the number of those who hold it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main(side: str) -> None:
    """Answer until the questions end. What libraries print goes to the log, not between the answers."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        trainee: Side | None = None
        decoder: Decoder | None = None
        for line in sys.stdin:
            question = json.loads(line)
            try:
                if "decoding" in question:
                    decoder, facts = load_decoder(side, Path(question["load"]), question["decoding"])
                    answer = Answer(facts)
                elif "load" in question:
                    trainee, facts = load(side, Path(question["load"]))
                    answer = Answer(facts)
                elif "decode" in question and decoder is not None:
                    began = time.perf_counter()
                    ids = decoder.decode(question["decode"])
                    answer = Answer({"seconds": time.perf_counter() - began, "ids": ids})
                elif "steps" in question and trainee is not None:
                    seconds = _timed(trainee, question["first"], question["steps"])
                    answer = Answer({"seconds": seconds, "peak_mib": most_memory(getattr(trainee, "workers", ()))})
                else:
                    raise ValueError(f"the first question must say what to `load`, but is {line.strip()}")
            except UserError as error:
                answer = Answer(refused=str(error))
            out.write(json.dumps(answer._asdict()) + "\n")
            out.flush()


def _timed(side: Side, first: int, steps: int) -> list[float]:
    seconds = []
    for number in range(first, first + steps):
        began = time.perf_counter()
        side.step(number)
        seconds.append(time.perf_counter() - began)
    return seconds
