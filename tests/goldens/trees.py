"""A tree: a worktree of the repository with an interpreter that has its dependencies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ADAPTER = Path(__file__).with_name("adapter.py")
PACKAGES = {"paddle_tfm": "paddle_tfm", "paddle_tfm_plugins": "plugins", "paddle_tfm_recipes": "recipes"}


@dataclass(frozen=True)
class Said:
    """What came of a command line."""

    status: int
    out: str
    errors: str


@dataclass(frozen=True)
class Task:
    """A command line of `paddle-tfm`, the folder in which it is given, and a file as its standard input."""

    arguments: Sequence[str]
    folder: Path
    stdin: Path | None = None


class Tree:
    """Its packages come first on the path of `python`, whatever is installed there; its files go into `folder`.

    Args:
        records: the worktree whose recorded results are compared, by either tree.
        jobs, every: of the classes of `kit`, every so many-th, in so many processes. case: what is asked for in names.
    """

    def __init__(self, root: Path, python: str, folder: Path, records: Path, jobs: int, every: int, case: str):
        self.root, self.python, self.folder, self.jobs = root.resolve(), python, folder.resolve(), jobs
        self.records, self.every, self.case = records.resolve(), every, case
        self.folder.mkdir(parents=True, exist_ok=True)
        self.made: set[str] = set()  # what is in `folder` already, made by this process
        packages = self.folder / "packages"
        packages.mkdir(exist_ok=True)
        for name, path in PACKAGES.items():
            link = packages / name
            if not link.is_symlink() or link.readlink() != self.root / path:
                link.unlink(missing_ok=True)
                link.symlink_to(self.root / path)
        alone = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE_TFM_KEEP")}
        self.environment = {
            "OMP_NUM_THREADS": "1",
            **alone,
            "PYTHONPATH": str(packages),
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }

    def commit(self) -> str:
        """The commit of the worktree."""
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    @property
    def is_whole(self) -> bool:
        """Whether all cases are asked for."""
        return not self.case and self.every == 1

    def chosen(self, names: Iterable[str]) -> list[str]:
        """The cases that were asked for."""
        return [name for name in names if self.case in name]

    def new_folder(self, name: str) -> Path:
        """An empty folder of that name."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def adapter(self, *arguments: object) -> subprocess.Popen:
        """Start the adapter with this tree's packages."""
        command = [self.python, str(ADAPTER), *map(str, arguments)]
        return subprocess.Popen(command, env=self.environment, cwd=self.folder)

    def commands(self, tasks: Sequence[Task]) -> list[Said]:
        """Give these command lines, one after another."""
        with tempfile.NamedTemporaryFile("w+", suffix=".json", dir=self.folder) as file:
            asked = [
                {
                    "arguments": list(map(str, task.arguments)),
                    "folder": str(task.folder),
                    "stdin": str(task.stdin or ""),
                }
                for task in tasks
            ]
            json.dump(asked, file)
            file.flush()
            if status := self.adapter("commands", file.name).wait():
                raise SystemExit(f"{self.root}: the command line cannot be called: status {status}")
            return [Said(**each) for each in json.loads(Path(file.name).read_text("utf-8"))]
