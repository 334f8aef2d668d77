"""What holds for a listener: a plugin whose hooks begin with `on_`. It is tried as users have it, on short trainings,
each a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from paddle_tfm import runtime
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.plugin_errors import TRACEBACK
from paddle_tfm.plugins import Plugins, listeners
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip
from paddle_tfm.testing.trials import interrupted

RECIPE = ("run", "base", "--device=cpu", "--workers=1", "--strict", "--out=runs", "seeds=[1]", *interrupted.TINY)
# `paddle-tfm` without the installed plugins that its first argument names. After as many seconds as the second says it
# writes where it waits, and ends
PROGRAM = """
import faulthandler, importlib.metadata, sys
left_out, seconds, usual = sys.argv[1], float(sys.argv[2]), importlib.metadata.entry_points
faulthandler.dump_traceback_later(seconds, exit=True)
importlib.metadata.entry_points = lambda **names: [each for each in usual(**names) if each.name != left_out]
from paddle_tfm.cli import main
main(sys.argv[3:])
"""
ENDED = "Timeout ("  # with which faulthandler begins
LIMIT, TIMES_WITHOUT, GRACE = 600.0, 5, 10.0  # seconds; times the training without it, and LIMIT at most; to end in
AS_LARGE = 1.2  # clocks and speeds are written longer or shorter; three steps of eight written twice are more
RUN = "runs/default/seed-1/"


@dataclass(frozen=True)
class Amount:
    """What one file holds, or all whose names differ in numbers only. `lines`: 0 for what is no text."""

    lines: int
    size: int


@dataclass(frozen=True)
class Training:
    """A short training that ended: what it said on standard error, its metrics, how much is in each file, and its
    seconds."""

    status: int
    said: str
    metrics: str
    files: Mapping[str, Amount]
    seconds: float


class Listener:
    """A plugin with `on_` hooks, and short trainings with it.

    Raises:
        UserError: there is no such plugin, or it has no such hook.
    """

    kind = "listener"

    def __init__(self, plugins: Plugins, name: str):
        hooks = listeners(plugins)
        if name not in hooks:
            raise UserError(f"{unknown('listener', name, hooks)}. A listener is a plugin with hooks `on_…`")
        self.name, self.hooks, self.scenes = name, hooks[name], [self]
        self.expected_failures = getattr(plugins.manager.get_plugin(name), "expected_failures", {})
        self.files = {key: Path(each.source).resolve() for key, each in plugins.providers.items() if each.is_file}

    @cached_property
    def whole(self) -> Training:
        """With it, and never interrupted."""
        with tempfile.TemporaryDirectory() as folder:
            return _train(Path(folder), self.files.values(), self.limit)

    @cached_property
    def without(self) -> Training:
        """The same training without it."""
        others = tuple(file for name, file in self.files.items() if name != self.name)
        return _without(others, "" if self.name in self.files else self.name)

    @cached_property
    def resumed(self) -> Training:
        """With it, killed in the middle between two checkpoints, and resumed."""
        with tempfile.TemporaryDirectory() as folder:
            training = Path(folder), self.files.values(), self.limit
            _train(*training, f"--plugin={interrupted.__file__}")
            return _train(*training, "--resume")

    @cached_property
    def limit(self) -> float:
        """Seconds after which a training with it is ended: a listener may wait for ever."""
        return min(LIMIT, GRACE + TIMES_WITHOUT * self.without.seconds)

    @property
    def written(self) -> list[str]:
        """Names of the files that it writes, below the current folder."""
        return sorted(self.whole.files.keys() - self.without.files.keys())


@lru_cache(maxsize=1)
def _without(files: tuple[Path, ...], left_out: str) -> Training:
    """A training with the plugins in these files, and without the installed one that is left out."""
    with tempfile.TemporaryDirectory() as folder:
        return _train(Path(folder), files, LIMIT, left_out=left_out)


def _train(folder: Path, files: Iterable[Path], limit: float, *options: str, left_out: str = "") -> Training:
    plugins = [f"--plugin={file}" for file in files]
    command = [*runtime.python(), "-c", PROGRAM, left_out, f"{limit}", *RECIPE, *plugins, *options]
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:  # a pipe, its children may keep
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(limit + GRACE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        said.seek(0)
        text = said.read()
    log = folder / RUN / "metrics.jsonl"
    metrics = log.read_text("utf-8") if log.is_file() else ""
    return Training(status, text, metrics, _amounts(folder), time.monotonic() - begin)


def _amounts(folder: Path) -> dict[str, Amount]:
    amounts: dict[str, Amount] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            name = file.relative_to(folder).as_posix().removeprefix(RUN)
            name = re.sub(r"\d+", "#", name)  # a file for each step, or for each start
            before = amounts.get(name, Amount(0, 0))
            amounts[name] = Amount(before.lines + _lines(content), before.size + len(content))
    return amounts


def _lines(content: bytes) -> int:
    try:
        return len(content.decode("utf-8").splitlines())
    except UnicodeDecodeError:
        return 0


def _last_words(listener: Listener, training: Training) -> str:
    """The sentence with which a training failed, or where it waits."""
    if ENDED in training.said:
        hooks = "|".join(listener.hooks)
        at = re.search(rf'File "(?P<file>.+)", line (?P<line>\d+) in (?P<hook>{hooks})$', training.said, re.MULTILINE)
        where = f", at {Path(at['file']).name} line {at['line']}, in {at['hook']}" if at else ""
        without = f"without it a training takes {listener.without.seconds:.0f}"
        return f"it has not ended after {listener.limit:.0f} seconds{where}; {without}"
    last = re.split(r"^Error: ", training.said, flags=re.MULTILINE)[-1]
    return " ".join(line.strip() for line in last.splitlines() if TRACEBACK not in line)


@check(
    "listener",
    invariant="a training with it runs to its end, and none of its hooks raises",
    consequence="it is switched off at its first error, and what it should have written is missing",
    hint="the error; what is not there at the first step, as an evaluation; what it waits for",
    decisive=True,
)
def runs(listener: Listener) -> Result:
    if listener.whole.status:
        return Failed(_last_words(listener, listener.whole))
    writes = f"writes {', '.join(listener.written)}" if listener.written else "writes no file"
    return Note(f"{', '.join(listener.hooks)}; {writes}")


@check(
    "listener",
    invariant="the run's metrics are the same with it and without it",
    consequence="a run with it is another experiment",
    hint="values of parameters that it sets, random numbers that it draws, the model left in evaluation mode; one that "
    "changes the run by design declares it: `expected_failures = {…}` in its module",
)
def same_metrics(listener: Listener) -> Result:
    ours, usual = (each.metrics.splitlines() for each in (listener.whole, listener.without))
    for one, other in zip(ours, usual):
        if one != other:
            return Failed(f"the run's log says {one[:120]}, and without it {other[:120]}")
    return Passed() if len(ours) == len(usual) else Failed(f"the run's log has {len(ours)} rows, not {len(usual)}")


@check(
    "listener",
    invariant="a killed and resumed run leaves the same as an uninterrupted one: nothing is written twice, and "
    "nothing is missing",
    consequence="its file holds steps twice, and its curve jumps back",
    hint="`on_run_start` comes again with `run.step` > 0, and the steps after it are done again: write the file again "
    "up to there, instead of appending to it; close or flush it at each line",
)
def resumes(listener: Listener) -> Result:
    if not listener.written:
        return Skip("it writes no file below the run's folder or the current one")
    if listener.resumed.status:
        return Failed(f"resumed, it fails: {_last_words(listener, listener.resumed)}")
    for name in listener.written:
        whole, resumed = listener.whole.files[name], listener.resumed.files.get(name, Amount(0, 0))
        if whole.lines != resumed.lines:
            what = f"{whole.lines} lines", f"{resumed.lines}"
        elif not 1 / AS_LARGE <= (resumed.size or 1) / (whole.size or 1) <= AS_LARGE:
            what = f"{whole.size:,} bytes", f"{resumed.size:,}"
        else:
            continue
        return Failed(
            f"{name} has {what[0]} after {interrupted.STEPS} steps, and {what[1]} where the run was killed at step "
            f"{interrupted.AT} and resumed at step {interrupted.EVERY}"
        )
    return Passed()
