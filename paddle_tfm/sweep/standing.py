"""How far a run is, by what is in its folder: whoever trains it, on whatever machine. Nothing is written, and Paddle is
not needed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.files import opened
from paddle_tfm.language import _
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.runs import manifest
from paddle_tfm.runs.forms import ABOUT, read_about, read_results
from paddle_tfm.runs.logs import NewRows
from paddle_tfm.sweep import claim

STATES = ("waiting", "running", "stopped", "killed", "silent", "unreadable", "diverged", "done")
LATEST_STEPS = 100  # that the speed is of
LATEST_BYTES = 1 << 20  # of a log that is read for the first time
QUIET_SECONDS = 120  # without a sign of a run
QUIET_STEPS = 30


@dataclass(frozen=True)
class Standing:
    """How far one run is.

    Args:
        state: `waiting`, nobody has begun it; `running`; `stopped`, its process ended in order without results;
            `killed`, its process is gone and did not say so; `silent`, claimed on another machine and without a sign;
            `unreadable`; `diverged` or `done`, with results.
        step: of `steps`. loss: of the last step. seconds_left: with evaluations, as far as it had any.
        best: the metric that decides. valid, scores: metrics of the last evaluation and, of one with results, of the
            test split (the validation split without one). units: of the metrics.
        seconds: that a run with results took.
        note: a sentence where something is out of order.
    """

    name: str
    folder: Path
    state: str = "waiting"
    step: int = 0
    steps: int = 0
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None
    best: str = ""
    valid: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it has results."""
        return self.state in ("done", "diverged")


class RunReader:
    """Reads the folder of one run again and again: of its logs what is new, of everything else what has changed."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder
        self.cache: dict[str, tuple[tuple[int, int], Any]] = {}  # file → its inode and time, what was made of it
        self._forget()

    def _forget(self) -> None:
        self.log = NewRows(self.folder / "metrics.jsonl", LATEST_BYTES)
        self.times = NewRows(self.folder / "timings.jsonl", LATEST_BYTES)
        self.last: dict[str, Any] = {}
        self.valid: dict[str, float] = {}
        self.tokens: deque[tuple[int, float]] = deque(maxlen=LATEST_STEPS)  # (step, tokens)
        self.seconds: deque[tuple[int, float]] = deque(maxlen=LATEST_STEPS)

    def look(self) -> Standing:
        """How far the run is now; what cannot be read is said in `note`."""
        try:
            return self._look()
        except OSError as error:
            note = _("{path}: cannot be read: {why}")
            note = note.format(path=error.filename or self.folder, why=error.strerror)
            return Standing(self.name, self.folder, "unreadable", note=note)
        except UserError as error:
            return Standing(self.name, self.folder, "unreadable", note=str(error))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            note = _("{folder} holds a file that no training writes ({why})")
            note = note.format(folder=self.folder, why=f"{type(error).__name__}: {error}")
            return Standing(self.name, self.folder, "unreadable", note=note)

    def _look(self) -> Standing:
        if results := self._made("results.json", _whole_results, is_whole=True):
            return self._finished(results)
        owner = claim.owner(self.folder)
        begun = self._made("recipe.yaml", lambda path: yaml_lines.load_file(path)[0]) or {}
        if not begun:
            self._forget()
            return Standing(self.name, self.folder, "running" if owner and owner.holds is not False else "waiting")
        self._read_logs()
        steps = int((begun.get("train") or {}).get("steps") or 0)
        standing = Standing(
            self.name,
            self.folder,
            step=int(self.last.get("step", 0)),
            steps=steps,
            loss=self.last.get("loss"),
            best=str((begun.get("evaluate") or {}).get("best", "loss")),
            valid=self.valid,
            units=self._made(ABOUT, lambda path: read_about(path.parent).get("units")) or {},
        )
        return self._owned(standing, owner)

    def _owned(self, standing: Standing, owner: claim.Owner | None) -> Standing:
        """With its state, which goes by who claimed it."""
        if owner is None:
            return replace(standing, state="stopped")
        quiet, patience = self._quiet(), max(QUIET_SECONDS, QUIET_STEPS * self._step_seconds())
        since = _("since {time} UTC") if owner.since else _("since then")
        since = since.format(time=owner.since[:16].replace("T", " "))
        if owner.holds is False and owner.is_local:
            note = _("{owner}, which trained it {since}, is gone")
            return replace(standing, state="killed", note=note.format(owner=owner, since=since))
        if not owner.holds and quiet > patience:
            note = _("{owner} trains it {since}, but wrote nothing for {time}")
            note = note.format(owner=owner, since=since, time=_minutes(quiet))
            return replace(standing, state="silent", note=note)
        note = _("nothing written for {time}; a long evaluation, or it hangs") if quiet > patience else ""
        note = note.format(time=_minutes(quiet))
        speed, left = self._speed(standing)
        return replace(standing, state="running", tokens_per_second=speed, seconds_left=left, note=note)

    def _finished(self, results: Mapping[str, Any]) -> Standing:
        begun = self._made("recipe.yaml", lambda path: yaml_lines.load_file(path)[0]) or {}
        step = results.get("steps", 0)
        return Standing(
            self.name,
            self.folder,
            "diverged" if results.get("diverged") else "done",
            step=step,
            steps=step,
            tokens_per_second=results.get("tokens_per_second"),
            best=str((begun.get("evaluate") or {}).get("best", "loss")),
            scores=results.get("test") or results.get("valid") or {},
            units=results.get("units") or {},
            seconds=results.get("wall_seconds", 0.0),
            note=results.get("diverged") or "",
        )

    def _read_logs(self) -> None:
        new = self.log()
        if self.log.is_new:  # replaced, as when a training resumes
            self.last, self.valid = {}, {}
            self.tokens.clear()
            self.seconds.clear()
        for row in new:
            if "evaluation" in row:
                self.valid = row["evaluation"]
            else:
                self.last = row
                self.tokens.append((row["step"], row.get("tokens", 0)))
        self.seconds.extend((row["step"], row.get("seconds", 0.0)) for row in self.times())

    def _speed(self, standing: Standing) -> tuple[float | None, float | None]:
        """Tokens per second of the latest steps; seconds left, with the share that evaluations and checkpoints took."""
        seconds = dict(self.seconds)
        both = [(tokens, seconds[step]) for step, tokens in self.tokens if step in seconds]
        spent = sum(second for _, second in both)
        if not spent:
            return None, None
        saved = self._made("checkpoints/last/state.json", lambda path: manifest.read_state(path.parent))
        more = max(1.0, saved.wall_seconds / saved.seconds) if saved and saved.seconds else 1.0
        left = (standing.steps - standing.step) * self._step_seconds() * more
        return sum(tokens for tokens, _ in both) / spent, max(0.0, left)

    def _step_seconds(self) -> float:
        return sum(second for _, second in self.seconds) / len(self.seconds) if self.seconds else 0.0

    def _quiet(self) -> float:
        """Seconds since the last sign of it."""
        signs = ("metrics.jsonl", claim.FILE, ABOUT, "checkpoints/last/state.json")
        times = [path.stat().st_mtime for path in map(self.folder.joinpath, signs) if path.exists()]
        return max(0.0, time.time() - max(times, default=time.time()))

    def _made(self, name: str, make, is_whole: bool = False) -> Any:
        """What `make` makes of a file, again only when it has changed; None where it is missing or half written. One
        that `is_whole` whenever it is there is damaged otherwise: a UserError."""
        path = self.folder / name
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        key = (status.st_ino, status.st_mtime_ns)
        if name not in self.cache or self.cache[name][0] != key:
            try:
                self.cache[name] = key, make(path)
            except UserError:
                if not path.exists():
                    return None
                if is_whole:
                    raise
                opened(path).close()  # no permission, or no file: an OSError, whose sentence says so
                return None
        return self.cache[name][1]


def _whole_results(path: Path) -> dict[str, Any]:
    """The results of a run. Raises UserError: they, or another file by which it is compared, are damaged."""
    results = read_results(path.parent)
    if sentence := manifest.damage_of_run(path.parent):
        raise UserError(sentence)
    return results


def _minutes(seconds: float) -> str:
    text, unit = (_("{number} minutes"), 60) if seconds < 7200 else (_("{number} hours"), 3600)
    return text.format(number=round(seconds / unit))
