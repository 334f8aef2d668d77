"""Who trains a run that is in a store. A store has no locks: a file there names the owner, who changes it again and
again; whoever finds it unchanged for long enough takes it over, and an owner who finds another's name in it stops."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text
from paddle_tfm.sweep import claim as claims
from paddle_tfm.sweep.store import Store, StoreError

BEAT_SECONDS = 10  # between two signs of life
SILENT_SECONDS = 45  # without one: its owner is gone. By the clock of who waits, so that no two clocks must agree
WRITTEN_SECONDS = 1  # until it is looked whether another wrote at the same time


class StoreClaim:
    """The claim on a run, with a thread that gives signs of life. owner: who has it instead, once it is lost."""

    def __init__(self, store: Store, name: str):
        self.store, self.name, self.file = store, name, f"{name}/{claims.FILE}"
        self.token, self.beats, self.owner = uuid4().hex, 0, ""
        self.since = claims.now()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._beat, name=f"claim of {name}", daemon=True)

    def take(self, stop: Callable[[], bool], report: Callable[[str], None]) -> None:
        """Wait until nobody gives signs of life, and claim the run.

        Raises:
            UserError: who trains it.
            Interrupted: `stop` said so.
            StoreError: the store was not to be had.
        """
        from paddle_tfm.train.trainer import Interrupted

        before = self.store.read(self.file)
        if before is not None:
            report(f"{self.name}: claimed in {self.store} by {_owner(before)}; taken over if it gives no sign of life")
        end = time.monotonic() + SILENT_SECONDS
        while before is not None and time.monotonic() < end:
            time.sleep(WRITTEN_SECONDS)
            now = self.store.read(self.file)
            if now is not None and now != before:
                raise UserError(self._taken(_owner(now, before)))
            if stop():
                raise Interrupted("")
            before = now
        self._write()
        time.sleep(WRITTEN_SECONDS)
        if not self.is_ours():
            raise UserError(self._taken(self.owner))
        self.thread.start()

    def release(self) -> None:
        """Stop giving signs of life, and let others have the run."""
        self.ended.set()
        if self.thread.ident is not None:
            self.thread.join(BEAT_SECONDS)
        with suppress(StoreError):
            if self.is_ours():
                self.store.remove(self.file)

    def is_ours(self) -> bool:
        """Whether nobody else's name is in it. Raises StoreError: the store was not to be had."""
        content = self.store.read(self.file)
        if content is not None and (claim := claims.parsed(content)) and claim.get("token") != self.token:
            self.owner = _owner(content)
        return not self.owner

    def lost(self) -> str:
        """That another process has it, as a sentence."""
        return f"{self._taken(self.owner)}; this process gave no sign of life for too long, and stopped"

    def _taken(self, owner: str) -> str:
        return f"{self.store}/{self.name} is being trained by {owner}; wait for its end, or stop it"

    def _beat(self) -> None:
        while not self.ended.wait(BEAT_SECONDS) and not self.owner:
            with suppress(StoreError):  # it may come back; whoever takes the run over meanwhile is seen then
                if self.is_ours():
                    self._write()

    def _write(self) -> None:
        self.beats += 1
        owner = {"host": platform.node(), "pid": os.getpid(), "since": self.since}
        self.store.write(self.file, json_text({**owner, "token": self.token, "beat": self.beats}).encode())


@contextmanager
def claimed(
    store: Store, name: str, stop: Callable[[], bool], report: Callable[[str], None] = lambda text: None
) -> Iterator[StoreClaim]:
    """Within this block the run is ours, as far as a store can say. Raises: as `StoreClaim.take`."""
    ours = StoreClaim(store, name)
    ours.take(stop, report)
    try:
        yield ours
    finally:
        ours.release()


def _owner(*contents: bytes) -> str:
    """Whom the first of them names that is no half of a file, as it is seen while it is written."""
    for content in contents:
        with suppress(KeyError):
            return claims.described(claims.parsed(content))
    return "another process"
