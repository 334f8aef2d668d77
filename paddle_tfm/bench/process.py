"""The process of one side, seen from outside: `worker` is what runs in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import IO, cast

from paddle_tfm import runtime
from paddle_tfm.bench.sides import KINDS, environment
from paddle_tfm.errors import UserError


class Worker:
    """The process of one side; `ask` sends it a request and waits for the answer."""

    def __init__(self, side: str, folder: Path):
        self.side, self.log = side, folder / f"{side}.log"
        # The first import decides whether Paddle loads in an unchanged environment or in a prepared one.
        code = f"import {KINDS[side].first}\nfrom paddle_tfm.bench.worker import main\nmain({side!r})"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*runtime.python(), "-W", "ignore", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(side),
                encoding="utf-8",
            )
        # Not None, as both are pipes.
        self.requests, self.answers = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)

    def __enter__(self) -> Worker:
        return self

    def ask(self, request: dict) -> dict:
        """The answer.

        Raises:
            UserError: the side raised one. RuntimeError: its process ended; its last lines are quoted.
        """
        try:
            self.requests.write(json.dumps(request) + "\n")
            self.requests.flush()
            line = self.answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status, last = self.process.wait(), self.log.read_text("utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the benchmark's side '{self.side}' ended with status {status}:\n{last}")
        answer = json.loads(line)
        if answer["error"] is not None:
            raise UserError(answer["error"])
        return answer["value"]

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.requests, self.answers):
            try:
                pipe.close()
            except BrokenPipeError:
                continue
