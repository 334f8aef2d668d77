"""A run in a store: its files by their content, and lists of them, of which the newest one that is whole counts.

A store has no renames. So no file there is ever changed: each is named by its SHA-256, a list that names a whole
state of the run is written last, under a new number, and only then what no list needs is removed. Whoever is killed in
between leaves the state before.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field, ValidationError

from paddle_tfm.errors import UserError
from paddle_tfm.files import PARTIAL, json_text, naming, parsed, remove, sha256, sync_all, write_whole
from paddle_tfm.sweep import claim
from paddle_tfm.sweep.store import Store, StoreError
from paddle_tfm.train import manifest
from paddle_tfm.train.forms import IDENTITY, RESULTS, Form
from paddle_tfm.train.logs import LOGS

LIST = re.compile(r"([0-9]{8,})\.json")
CONTENT = re.compile(r"[0-9a-f]{64}")
KEPT_LISTS = 2  # the newest, and the one before, should the newest not be whole
PROGRESS = ("recipe.yaml", "about.json", *LOGS)  # that say how far a run is
READ_TRIES, PAUSE_SECONDS = 3, 1


class State(Form):
    """A whole state of a run: the `step` of its checkpoint, −1 where it has none; whether it has results; and path →
    SHA-256 of its files."""

    step: Annotated[int, Field(ge=-1, lt=2**63)]
    is_finished: bool
    files: dict[str, str]


@dataclass
class StoredRun:
    """The run `name` in a store.

    Raises:
        StoreError: the store was not to be had.
    """

    store: Store
    name: str
    lists: set[int] = field(default_factory=set, init=False, repr=False)  # numbers of those in it, whole or not
    there: set[str] = field(default_factory=set, init=False, repr=False)  # contents in it, whole or not
    owner: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # its claim, as it was seen last
    kept: dict[int, State] = field(default_factory=dict, init=False, repr=False)  # the last whole lists

    def __str__(self) -> str:
        return f"{self.store}/{self.name}"

    def look(self) -> State | None:
        """The newest whole state that is in the store; None where there is none."""
        names = self.store.names(self.name)
        self.lists = {int(match[1]) for match in map(LIST.fullmatch, names) if match}
        self.there = {name for name in names if CONTENT.fullmatch(name)}
        states = ((number, self._read(number)) for number in sorted(self.lists, reverse=True))
        self.kept = dict(islice(((number, state) for number, state in states if state is not None), KEPT_LISTS))
        return self.kept[max(self.kept)] if self.kept else None

    def _read(self, number: int) -> State | None:
        """What a list says; None where it is not whole: it was being written when its writer died."""
        try:
            state = State.model_validate_json(self.store.read(self._list(number)) or b"")
        except ValidationError:
            return None
        is_whole = IDENTITY in state.files and state.is_finished == (RESULTS in state.files)
        folders = {str(above) for path in state.files for above in PurePosixPath(path).parents}
        is_sound = folders.isdisjoint(state.files) and all(_is_sound(*item) for item in state.files.items())
        return state if is_whole and is_sound else None

    def save(self, state: State, folder: Path) -> None:
        """Copy a state of the run there, whose files lie in `folder`. `look` must have been called before: what the
        store has already is not copied again."""
        whole = {content for each in self.kept.values() for content in each.files.values()}
        for path, content in state.files.items():
            if content not in whole:
                self.store.upload(folder / path, f"{self.name}/{content}")
                self.there.add(content)
                whole.add(content)
        number = max(self.lists, default=0) + 1
        self.store.write(self._list(number), json_text(state.model_dump()).encode())
        self.lists.add(number)
        self.kept[number] = state
        self._tidy()

    def _tidy(self) -> None:
        """Remove the lists before the last two, and the contents that none of these needs. Only what this process saw
        or wrote: who else may write there by mistake loses nothing."""
        self.kept = {number: self.kept[number] for number in sorted(self.kept)[-KEPT_LISTS:]}
        for number in self.lists - self.kept.keys():
            self.store.remove(self._list(number))
        self.lists &= self.kept.keys()
        needed = {content for state in self.kept.values() for content in state.files.values()}
        for content in self.there - needed:
            self.store.remove(f"{self.name}/{content}")
        self.there &= needed

    def fetch(self, folder: Path, wanted: State) -> None:
        """Bring a state of the run into its folder on this machine, in the place of what is there, once it is here as a
        whole and is what its list says. A kill in between leaves a folder in which no run is begun.

        Raises:
            StoreError: it is gone, or damaged.
        """
        partial = folder / f"store{PARTIAL}"
        try:
            with naming(folder):
                run = self._download(partial, wanted)
                self._require_places(folder, wanted)
                for name in (IDENTITY, RESULTS):
                    (folder / name).unlink(missing_ok=True)
                remove(folder / "checkpoints", ignore_errors=True)
                # these two come last: with them a folder is begun, and finished
                for path in sorted(wanted.files, key=lambda path: (path == RESULTS, path == IDENTITY)):
                    if path in (IDENTITY, RESULTS):
                        sync_all(folder)
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (run / path).replace(folder / path)  # a link there is not followed
                sync_all(folder)
        finally:
            remove(partial, ignore_errors=True)

    def _download(self, partial: Path, wanted: State) -> Path:
        """The folder of a state that was brought into `partial`, as a whole and as its list says."""
        remove(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for content in set(wanted.files.values()):
            self.store.download(f"{self.name}/{content}", partial / content)
            if sha256(partial / content) != content:
                raise StoreError(f"{self}: damaged: the content of {content[:12]}… is another")
        run = partial / "run"
        for path, content in wanted.files.items():
            (run / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(partial / content, run / path)  # no links: a log is appended to
        self._require_checkpoint(run, wanted)
        return run

    def _require_places(self, folder: Path, state: State) -> None:
        """Raises StoreError where a file of a state cannot be put into its folder, before anything there is removed."""
        for path in state.files:
            place, above = folder / path, [folder / each for each in PurePosixPath(path).parents]
            if not path.startswith("checkpoints/") and place.is_dir():
                raise StoreError(f"{self}: damaged: a list names {path} as a file, but {place} is a folder")
            if wrong := next((each for each in above if each.exists() and not each.is_dir()), None):
                raise StoreError(f"{self}: damaged: a list names {path}, but {wrong} is a file")

    def _require_checkpoint(self, run: Path, state: State) -> None:
        """Raises StoreError where the checkpoint among a state's files is not whole, or not of the step that its list
        says: what is here may be farther. Of an unfinished run, where it cannot be resumed from; a finished one may
        have its best weights alone."""
        if state.is_finished and state.step < 0:
            if sentence := manifest.damage(run / "checkpoints" / "best"):
                raise StoreError(f"{self}: damaged: a list of a finished run names no whole checkpoint: {sentence}")
            return
        point = run / "checkpoints" / "last"
        try:
            sentence = manifest.damage(point) if state.is_finished else None
            there = _step(point) if state.is_finished else checkpoint_step(run)
        except UserError as error:
            sentence, there = str(error), -1
        if sentence or there != state.step:
            what = sentence or ("none that is whole" if there < 0 else f"one of step {there:,}")
            raise StoreError(
                f"{self}: damaged: a list says that a checkpoint is of step {state.step:,}, but names {what}"
            )

    def fetch_newest(self, folder: Path, is_wanted: Callable[[State], bool]) -> bool:
        """Bring the newest state into a folder, or the one before where it is damaged, if it is wanted; whether one was
        brought.

        Raises:
            StoreError: one is wanted, and none is whole.
        """
        failures = []
        self.look()
        for number in sorted(self.kept, reverse=True):
            if not is_wanted(self.kept[number]):
                break
            for _ in range(READ_TRIES):
                try:
                    self.fetch(folder, self.kept[number])
                    return True
                except StoreError as error:
                    failures.append(error)
                    time.sleep(PAUSE_SECONDS)
        if failures:
            raise failures[0]
        return False

    def fetch_progress(self, folder: Path) -> None:
        """Bring what says how far the run is, and who trains it, into its folder on this machine, in which no run is
        begun by that."""
        owner = claim.parsed(self.store.read(f"{self.name}/{claim.FILE}") or b"")
        if owner and owner != self.owner:  # it gave a sign of life
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / claim.FILE, json_text({**owner, claim.ELSEWHERE: str(self.store)}))
            self.owner = owner
        before = max(self.kept, default=0)
        state = self.look()
        if state is not None and max(self.kept) != before:
            folder.mkdir(parents=True, exist_ok=True)  # whoever trained it has dropped its claim by now
            for path in PROGRESS:
                if content := self.store.read(f"{self.name}/{state.files.get(path)}"):
                    write_whole(folder / path, content)

    def identity(self, state: State) -> str | None:
        """The hash of the identity of the run whose state it is; None where it cannot be read."""
        try:
            return str(parsed(self.store.read(f"{self.name}/{state.files[IDENTITY]}") or b"")["hash"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def _list(self, number: int) -> str:
        return f"{self.name}/{number:08d}.json"


def state_of(folder: Path, staged: Path | None = None) -> State:
    """The state of a run in its folder. staged: where copies of its files are, if they are read from there."""
    root = staged or folder
    paths = sorted(path.relative_to(root).as_posix() for path in files_of(root))
    files = {path: sha256(root / path) for path in paths}
    return State(step=_step(root / "checkpoints" / "last"), is_finished=RESULTS in paths, files=files)


def files_of(folder: Path) -> Iterator[Path]:
    """The files of a run that it is resumed from, and that it leaves when it is finished.

    Raises:
        OSError: one of its folders cannot be read.
    """
    for path in sorted(folder.iterdir()):
        # What passes is not even looked into: another thread may be removing it.
        if _passes(path.name) or path.is_symlink():
            continue
        if path.is_dir():
            yield from files_of(path)
        else:
            yield path


def _passes(name: str) -> bool:
    """Whether it is the name of what is there for a while only."""
    return name == claim.FILE or name.endswith((PARTIAL, manifest.OLD))


def checkpoint_step(folder: Path) -> int:
    """The step of the checkpoint that the run in a folder resumes from; −1 where it has none."""
    try:
        point = manifest.resume_point(folder / "checkpoints")
    except UserError:  # none is whole
        return -1
    return -1 if point is None else _step(point)


def _step(point: Path) -> int:
    return int(manifest.read_state(point)["step"]) if point.exists() else -1


def _is_sound(path: str, content: str) -> bool:
    """Whether a list may name such a file: one that `files_of` gives, below the run's folder, by its content."""
    parts = PurePosixPath(path).parts
    is_below = bool(parts) and not any(part in ("/", "..") or "\\" in part or "\0" in part for part in parts)
    return is_below and not any(map(_passes, parts)) and bool(CONTENT.fullmatch(content))
