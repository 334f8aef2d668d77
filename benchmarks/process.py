"""The process of one side, seen from outside: `worker` is what runs in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import IO, cast

from benchmarks.sides import SIDES, environment
from paddle_tfm import runtime
from paddle_tfm.errors import UserError


class Process:
    """The process of one side, loaded; `what` is the class of its library: `Training` or `Search`. `facts` is what the
    side says of itself, `turn` has it do a job and waits for the answer.

    Raises:
        UserError: the side raised one. RuntimeError: its process ended; its last lines are quoted.
    """

    def __init__(self, side: str, what: str, folder: Path):
        self.side, self.log = side, folder / f"{side}.log"
        call = f"from benchmarks.worker import main\nmain({side!r}, {what!r}, {str(folder)!r})"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*runtime.python(), "-W", "ignore", "-c", f"import {SIDES[side].first}\n{call}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(side),
                encoding="utf-8",
            )
        # Not None, as both are pipes.
        self.requests, self.answers = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)
        try:
            self.facts = self._answer()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Process:
        return self

    def turn(self, job: str, number: int) -> dict:
        """The seconds of the turn `number` of a job, its outputs, and the most memory in MiB that the side had."""
        self.requests.write(json.dumps([job, number]) + "\n")
        self.requests.flush()
        return self._answer()

    def _answer(self) -> dict:
        line = self.answers.readline()
        if not line:
            status, last = self.process.wait(), self.log.read_text("utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the benchmark's side '{self.side}' ended with status {status}:\n{last}")
        answer = json.loads(line)
        if "error" in answer:
            raise UserError(answer["error"])
        return answer

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.answers.close()
