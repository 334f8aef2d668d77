"""Cells that train nothing: what executors do with commands is seen at once."""

import os
import shlex
from pathlib import Path

from paddle_tfm.protocols import Cell, Supervisor


class FakeCell(Cell):
    """A line of shell in the place of a training; `finish` in it makes its run finished."""

    def __init__(self, folder: Path, name: str, line: str):
        self.name, self.folder, self.environment = name, folder / name, dict(os.environ)
        self.folder.mkdir(exist_ok=True)
        results = shlex.quote(str(self.folder / "results.json"))
        self.command = ["sh", "-c", f"finish() {{ touch {results}; }}; {line}"]

    @property
    def is_finished(self):
        return (self.folder / "results.json").exists()

    @property
    def is_claimed(self):
        return False


class FakeSupervisor(Supervisor):
    workers = 1

    def __init__(self):
        self.sentences, self.stopped = [], lambda: False

    def stop(self):
        return self.stopped()

    def report(self, sentence):
        self.sentences.append(sentence)

    def follow(self, cell):
        pass


def is_alive(pid):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
