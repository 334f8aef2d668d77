"""A run that is trained here and kept in a store: brought from there before the training, and copied there while it
lasts, by a thread, so that a store that is slow or gone keeps no step waiting."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

from paddle_tfm.errors import UserError
from paddle_tfm.files import PARTIAL, remove
from paddle_tfm.hookspecs import hookimpl
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.store import StoreError
from paddle_tfm.sweep.store_claim import StoreClaim, claimed
from paddle_tfm.sweep.stored_run import State, StoredRun, checkpoint_step, files_of, state_of

PAUSES = (1, 2, 4, 8, 16)  # seconds between the tries of one copy
LEAVE_SECONDS = 60  # for the last checkpoint of a training that was stopped
POLL_SECONDS = 0.2


class Uploads:
    """The listener that has each checkpoint of a run copied to a store, as soon as it and all that belongs to it is
    saved. One that is not copied when the next is saved is left out.

    Args:
        report: gets a sentence on a checkpoint that was not copied; called by the training's own thread.
    """

    def __init__(self, folder: Path, stored: StoredRun, ours: StoreClaim, report: Callable[[str], None]):
        self.folder, self.stored, self.ours, self.report = folder, stored, ours, report
        self.staged = folder / f"upload{PARTIAL}"
        self.lock = threading.Condition()
        self.next: Path | None = None  # a state that waits to be copied
        self.is_busy, self.is_ended, self.number = False, False, 0
        self.sentences: SimpleQueue[str] = SimpleQueue()
        self.failure: StoreError | None = None  # of the state that was to be copied last
        self.thread = threading.Thread(target=self._work, name=f"copies of {stored.name}", daemon=True)
        remove(self.staged, ignore_errors=True)  # of a process that was killed
        self.thread.start()

    @hookimpl
    def on_checkpoint(self, run, step, path) -> None:
        if path.name == "last":  # saved after the best weights and the snapshots that it needs
            self.stage()

    @hookimpl
    def on_step_end(self, run, step, metrics) -> None:
        self._say()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the run over."""
        return bool(self.ours.owner)

    def stage(self) -> None:
        """Have the run as it is now copied."""
        self._say()
        self.number += 1
        staged = self.staged / str(self.number)
        try:
            for path in files_of(self.folder):
                copy = staged / path.relative_to(self.folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                _stage(path, copy)
        except OSError as error:
            remove(staged, ignore_errors=True)
            self.report(f"{self.stored.name} was not copied: {error.filename or staged}: {error.strerror}")
            return
        with self.lock:
            if self.next is not None:
                remove(self.next)
            self.next = staged
            self.lock.notify_all()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until nothing is left to copy.

        Raises:
            StoreError: what was to be copied last was not.
        """
        with self.lock:
            is_done = self.lock.wait_for(lambda: self.next is None and not self.is_busy, seconds)
        self._say(but_last=True)
        if not is_done:
            raise StoreError(f"{self.stored}: its newest checkpoint is not copied after {seconds:g} seconds")
        if self.failure is not None:
            raise self.failure

    def end(self) -> None:
        """Copy nothing more; what is being copied may be left as it is."""
        with self.lock:
            self.is_ended = True
            self.lock.notify_all()
        self.thread.join(POLL_SECONDS)
        remove(self.staged, ignore_errors=True)

    def _say(self, but_last: bool = False) -> None:
        """Report what the thread has to say; `but_last`: whoever asks hears of the last failure otherwise."""
        sentences = []
        while True:
            try:
                sentences.append(self.sentences.get_nowait())
            except Empty:
                break
        for sentence in sentences[:-1] if but_last and self.failure else sentences:
            self.report(sentence)

    def _work(self) -> None:
        while True:
            with self.lock:
                self.is_busy = False
                self.lock.notify_all()
                self.lock.wait_for(lambda: self.next is not None or self.is_ended)
                if self.is_ended:
                    return
                staged, self.next, self.is_busy = self.next, None, True
            assert staged is not None
            try:
                self.failure = self._copied(staged, state_of(staged))
            except OSError as error:  # the disk of this machine
                self.failure = StoreError(f"{error.filename or staged}: {error.strerror}")
            except Exception as error:  # whoever waits for this thread must hear of it
                what = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                self.failure = StoreError(what.replace(str(staged), str(self.folder)))
            if self.failure is not None:
                self.sentences.put(f"{self.stored.name} was not copied: {self.failure}; the next checkpoint will be")
            remove(staged, ignore_errors=True)

    def _copied(self, staged: Path, state: State) -> StoreError | None:
        """Copy a state, again and again after longer and longer pauses, until it is there or a newer one waits; why it
        is not."""
        for pause in (*PAUSES, 0):
            try:
                if self.ours.is_ours():
                    self.stored.save(state, staged)
                return None
            except StoreError as error:
                failure = error
            with self.lock:
                if self.lock.wait_for(lambda: self.next is not None or self.is_ended, pause):
                    break
        return failure


def _stage(path: Path, copy: Path) -> None:
    """A second name for a file of a checkpoint, which nobody writes to again; a copy of any other."""
    if "checkpoints" in path.parts:
        try:
            os.link(path, copy)
            return
        except OSError:  # this file system has no links
            pass
    shutil.copyfile(path, copy)


@contextmanager
def kept(cell: Cell, stop: Callable[[], bool], report: Callable[[str], None]) -> Iterator[Uploads | None]:
    """Within this block a run is ours in its store, its folder has the newest state of the two, and the listener that
    this yields has to be registered; None where there is no store. At its end all is copied; a run that is not copied
    then is said to be, and stays whole in its folder.

    Raises:
        UserError: another process trains it, or took it over; it is another run there than here.
        StoreError: the store was not to be had before the training.
        Interrupted: `stop` said so before it.
    """
    if cell.store is None:
        yield None
        return
    with claimed(cell.store, cell.name, stop, report) as ours:
        stored = cell.stored()
        _bring(cell, stored, report)
        stored.look()
        uploads = Uploads(cell.folder, stored, ours, report)
        try:
            yield uploads
        except Exception as error:
            if ours.owner:
                raise UserError(ours.lost()) from error
            _leave(uploads, LEAVE_SECONDS, report)
            raise
        else:
            if not cell.is_stored:
                uploads.stage()
            _leave(uploads, None, report)
        finally:
            uploads.end()


def _bring(cell: Cell, stored: StoredRun, report: Callable[[str], None]) -> None:
    """Bring the run from the store, if it is farther there than here."""
    if (state := stored.look()) is None:
        return
    cell.require_same_run(state)
    is_finished, step = cell.has_results, checkpoint_step(cell.folder)
    try:
        stored.fetch_newest(cell.folder, lambda there: not is_finished and (there.is_finished or there.step > step))
    except StoreError as error:
        if step < 0:
            raise
        report(f"{cell.name} is resumed from what is in {cell.folder}, step {step:,}: {error}")


def _leave(uploads: Uploads, seconds: float | None, report: Callable[[str], None]) -> None:
    try:
        uploads.wait(seconds)
    except StoreError as error:
        report(f"{uploads.stored.name} is whole in {uploads.folder}, but was not copied: {error}; --resume copies it")
