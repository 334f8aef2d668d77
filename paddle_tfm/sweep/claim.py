"""A run's folder belongs to the process that trains it: no second one writes into it meanwhile."""

from __future__ import annotations

import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple, TextIO

from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text, naming, read_json
from paddle_tfm.language import _

FILE = "claim.json"
TRIES, PAUSE = 5, 0.05  # whoever asks whether a run is claimed locks its claim for an instant


class Owner(NamedTuple):
    """Who claimed a run. `holds`: whether that process still has the lock; None where nobody can say, because the file
    system has no locks or the file cannot be read."""

    host: str
    pid: int
    since: str
    holds: bool | None

    @property
    def is_local(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == platform.node()

    def __str__(self) -> str:
        if not self.pid:
            return _("a process")
        return _("process {pid} on {host}").format(pid=self.pid, host=self.host)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Within this block the run in `folder` is ours. The system holds the lock and drops it when the process ends, in
    whatever way, so that a killed one keeps nobody out; other machines see it as far as their file system carries
    locks (NFS does). One that has no locks at all keeps nobody out either.

    Raises:
        UserError: who trains the run.
    """
    path = folder / FILE
    file = _locked(path)
    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    try:
        with naming(path):
            file.write(json_text({"host": platform.node(), "pid": os.getpid(), "since": since}))
            file.flush()
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()
        with suppress(OSError):  # only where nothing was written into it, nor beside it
            folder.rmdir()
            folder.parent.rmdir()


def owner(folder: Path) -> Owner | None:
    """Who claimed the run in `folder`, and whether it still holds it; None where nobody did. It writes nothing."""
    path = folder / FILE
    if not path.exists():
        return None
    holds = _is_locked(path)
    try:
        stored = read_json(path, ("host", "pid", "since"))
        return Owner(stored["host"], stored["pid"], stored["since"], holds)
    except UserError:  # it is being written
        return Owner("?", 0, "", holds)


def is_claimed(folder: Path) -> bool:
    """Whether a process trains the run in `folder` now."""
    return _is_locked(folder / FILE) is True


def _is_locked(path: Path) -> bool | None:
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)  # by name: a fork that began meanwhile has the file open too
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return None


def _locked(path: Path) -> TextIO:
    """The file, empty, with our lock on it."""
    tries = 0
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("a", encoding="utf-8")
        except FileNotFoundError:
            continue  # its holder removed the empty folder between our two calls
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            tries += 1
            if tries == TRIES:
                raise UserError(_taken(path.parent)) from None
            time.sleep(PAUSE)
            continue
        except OSError:
            return file  # this file system has no locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.truncate(0)
                return file
        file.close()  # it was removed between our two calls


def _taken(folder: Path) -> str:
    who = owner(folder)
    since = _(", since {time}").format(time=who.since) if who and who.since else ""
    return _("{folder} is being trained by {who}{since}; wait for its end, or stop it").format(
        folder=folder, who=who or _("a process"), since=since
    )
