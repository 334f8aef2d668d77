"""All runs below a folder, and how far each is: one run, a sweep, or several sweeps."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heapreplace
from pathlib import Path
from statistics import fmean

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.recipe.sections.tuning import is_beside
from paddle_tfm.runs.sweep_files import COMMAND_FILE, read_command
from paddle_tfm.sweep.standing import RunReader, Standing

LOOKS_BETWEEN = 15  # two searches for sweeps that are new below a folder


@dataclass(frozen=True)
class SweepRuns:
    """The runs of one sweep, in the order in which they are trained; those of a single run are that one."""

    folder: Path
    runs: Sequence[Standing]

    @property
    def is_finished(self) -> bool:
        """Whether every run has results."""
        return all(run.is_finished for run in self.runs)

    @property
    def reported(self) -> list[Standing]:
        """Those that are compared: trials of tuning are not."""
        return [run for run in self.runs if not is_beside(run.folder)]

    def complete_seeds(self) -> list[str]:
        """The seeds under which every run has results: `seed-1`."""
        seeds: dict[str, list[bool]] = {}
        for run in self.reported:
            seeds.setdefault(run.folder.name, []).append(run.is_finished)
        return [seed for seed, finished in seeds.items() if all(finished)]

    def seeds(self) -> list[str]:
        """All seeds, in their order."""
        return list(dict.fromkeys(run.folder.name for run in self.reported))

    def again(self) -> str:
        """The command that continues what is not finished; "" where none was recorded."""
        command = read_command(self.folder).command
        return shlex.join([*command, "--out", str(self.folder), "--resume"]) if command else ""


@dataclass(frozen=True)
class Overview:
    """Every sweep below `folder`. `at_once`: how many runs were seen to be trained side by side."""

    folder: Path
    sweeps: Sequence[SweepRuns]
    at_once: int

    @property
    def runs(self) -> list[Standing]:
        """The runs of all sweeps."""
        return [run for sweep in self.sweeps for run in sweep.runs]

    @property
    def is_finished(self) -> bool:
        """Whether every run of every sweep has results."""
        return all(sweep.is_finished for sweep in self.sweeps)

    def counts(self) -> Counter[str]:
        """State → number of runs."""
        return Counter(run.state for run in self.runs)

    def seconds_left(self) -> float | None:
        """Until all runs have results, each given to whoever is free first; None where nothing is trained, or nothing
        is known yet. A run that waits takes as long as those of its variant, or as all do on average."""
        runs = self.runs
        lengths = {run.name: length for run in runs if (length := _length(run))}
        if not lengths or not any(run.state == "running" for run in runs):
            return None
        by_variant: dict[str, list[float]] = {}
        for name, length in lengths.items():
            by_variant.setdefault(name.rpartition("/")[0], []).append(length)
        mean = fmean(lengths.values())

        def rest(run: Standing) -> float:
            if run.seconds_left is not None:
                return run.seconds_left
            length = fmean(by_variant.get(run.name.rpartition("/")[0], [mean]))
            return length * (1 - run.step / run.steps) if run.steps else length

        due = [run for run in runs if not run.is_finished]
        due.sort(key=lambda run: run.state != "running")  # whoever is trained has a place already
        return duration([rest(run) for run in due], self.at_once)


def duration(seconds: Sequence[float], at_once: int) -> float:
    """Seconds until all runs are trained, `at_once` side by side, each begun in its turn as soon as one ends."""
    ends = [0.0] * min(at_once, max(len(seconds), 1))
    for each in seconds:
        heapreplace(ends, ends[0] + each)
    return max(ends)


def _length(run: Standing) -> float:
    """Seconds that a run takes from its beginning to its end; 0 where they are not known."""
    if run.is_finished:
        return run.seconds if run.state == "done" else 0.0
    if run.seconds_left is None or run.step >= run.steps:
        return 0.0
    return run.seconds_left * run.steps / (run.steps - run.step)


class FolderReader:
    """Looks at a folder again and again. Each run keeps its reader, so that of a log only what is new is read.

    Args:
        folder: of a run, of a sweep or of a part of one, or of several sweeps.
        at_once: how many runs are trained side by side, where that is known.
    """

    def __init__(self, folder: Path, at_once: int = 1):
        self.folder, self.at_once = folder, at_once
        self.readers: dict[Path, RunReader] = {}
        self.places: list[Path] = []  # of sweeps, and of runs that belong to none
        self.looks = 0

    def look(self) -> Overview:
        """How far everything is now. A sweep has the runs that its `command.json` lists: they may become more or fewer.

        Raises:
            UserError: there is no such folder, or not any more.
            OSError: it cannot be read.
        """
        if self.looks % LOOKS_BETWEEN == 0 or not self.places:
            above = _sweep_above(self.folder)
            self.places = [above] if above else list(_places(self.folder))
        elif not self.folder.is_dir():
            raise UserError(_("{folder} is gone").format(folder=self.folder))
        self.looks += 1
        sweeps = [SweepRuns(place, runs) for place in self.places if (runs := self._runs(place))]
        running = sum(run.state == "running" for sweep in sweeps for run in sweep.runs)
        self.at_once = max(self.at_once, running)
        return Overview(self.folder, sweeps, self.at_once)

    def _runs(self, place: Path) -> list[Standing]:
        folders = [place / name for name in read_command(place).runs] or ([place] if _is_run(place) else [])
        top = self.folder.resolve()
        return [self._reader(each, place).look() for each in folders if each.resolve().is_relative_to(top)]

    def _reader(self, folder: Path, place: Path) -> RunReader:
        if folder not in self.readers:
            self.readers[folder] = RunReader(_name(folder, place, self.folder), folder)
        return self.readers[folder]


def _name(folder: Path, place: Path, top: Path) -> str:
    """variant/seed-n, with the path to its sweep where `top` may hold several."""
    if folder == place:
        return "/".join(folder.resolve().parts[-2:])
    inner = folder.relative_to(place)
    return (place.relative_to(top) / inner if place.is_relative_to(top) else inner).as_posix()


def _sweep_above(folder: Path) -> Path | None:
    """The sweep that lists the run in `folder`, or runs of the variant whose folder it is."""
    top = folder.resolve()
    for place in list(top.parents)[:2]:
        if any((place / name).is_relative_to(top) for name in read_command(place).runs):
            return Path(os.path.relpath(place))
    return None


def _places(folder: Path) -> Iterator[Path]:
    """The sweeps in `folder`, and the runs in it that belong to none."""
    if (folder / COMMAND_FILE).is_file() or _is_run(folder):
        yield folder
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        raise UserError(_("{folder}: there is no such folder").format(folder=folder)) from None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            # Another's folder, or one that was removed just now, is no sweep to follow.
            with suppress(PermissionError, UserError):
                yield from _places(folder / entry.name)


def _is_run(folder: Path) -> bool:
    return (folder / "identity.json").is_file()
