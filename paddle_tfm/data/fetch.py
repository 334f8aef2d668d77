"""Files over HTTP(S): mirrors in turn, tried again where a connection fails, hashed before use."""

from __future__ import annotations

import http.client
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from paddle_tfm.files import sha256
from paddle_tfm.language import _
from paddle_tfm.protocols import RemoteFile

TIMEOUT_SECONDS = 30.0  # without a byte, after which a connection is abandoned
TRIES = 3  # of each mirror
RETRY_SECONDS = 1.0  # before the second try, doubled before each further one
BLOCK_BYTES = 1 << 16
TRANSIENT_STATUSES = (408, 425, 429, 500, 502, 503, 504)  # worth another try

Progress = Callable[[int, "int | None"], None]  # bytes so far, bytes in all
Observer = Callable[[str, "int | None"], Progress]  # name and size of a file that is about to be fetched


class Unreachable(Exception):
    """No mirror gives the file; the message says why, one reason a mirror."""


class _TransientError(Exception):
    """A connection failed in a way that a second try may mend."""


def in_words(size: int | None) -> str:
    """A number of bytes for people: 1.3 MB, 21.6 kB; `?` where it is not known."""
    return "?" if size is None else f"{size / 1e6:,.1f} MB" if size >= 50_000 else f"{size / 1e3:,.1f} kB"


def _announce(name: str, size: int | None) -> Progress:
    # Not by `logging`: Paddle gives the root logger a handler at its import, which we silence.
    sys.stderr.write(f"fetching {name} ({in_words(size)})\n")
    return lambda done, total: None


_observer: ContextVar[Observer] = ContextVar("paddle_tfm_fetch_observer", default=_announce)


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Within this block, `observer` is called for each fetched file; else each has a line on standard error."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def fetch(file: RemoteFile, path: Path) -> None:
    """Fetch a file to `path`, from the first mirror that gives it; what is not whole leaves nothing.

    Raises:
        Unreachable: no mirror gives it.
        OSError: it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    progress, reasons = _observer.get()(f"{path.parent.name}/{path.name}", file.size), []
    try:
        for url in file.urls:
            try:
                _try_mirror(url, file, part, progress)
            except Unreachable as error:
                reasons.append(f"{urllib.parse.urlsplit(url).netloc or url} {error}")
            else:
                part.replace(path)
                return
    finally:
        part.unlink(missing_ok=True)
    raise Unreachable("; ".join(dict.fromkeys(reasons)) or _("no address of it is known"))


def _try_mirror(url: str, file: RemoteFile, part: Path, progress: Progress) -> None:
    """Bring the file, whose hash is right, by as many tries as that takes; TRIES at most."""
    for number in range(1, TRIES + 1):
        try:
            _receive(url, part, file.size, progress)
            if file.sha256 in (None, sha256(part)):
                return
            raise _TransientError(_("gives another file (its SHA-256 differs)"))
        except _TransientError as error:
            if number == TRIES:
                raise Unreachable(str(error)) from error
        time.sleep(RETRY_SECONDS * 2 ** (number - 1))


def _receive(url: str, part: Path, size: int | None, progress: Progress) -> None:
    """One request.

    Raises:
        _TransientError: the next try may succeed.
        Unreachable: it will not.
    """
    with _open(url) as response, part.open("wb") as file:
        if response.headers.get_content_type() == "text/html":
            raise Unreachable(_("answers with a web page"))
        length, done = response.headers.get("Content-Length", ""), 0
        total = int(length) if length.isdigit() else size
        if None not in (total, size) and total != size:
            raise Unreachable(
                _("gives another file ({total:,} bytes instead of {size:,})").format(total=total, size=size)
            )
        progress(done, total)
        for block in _blocks(response):
            done += file.write(block)
            progress(done, total)
    if total not in (None, done):
        raise _TransientError(_("ends the connection early"))


def _open(url: str) -> http.client.HTTPResponse:
    request = urllib.request.Request(url, headers={"User-Agent": "paddle-tfm"})
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        kind = _TransientError if error.code in TRANSIENT_STATUSES else Unreachable
        raise kind(f"answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _TransientError(_cause(error)) from error


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            block = response.read1(BLOCK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise _TransientError(_cause(error)) from error
        if not block:
            return
        yield block


def _cause(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return _("does not answer in time")
    return _("cannot be reached: {why}").format(
        why=getattr(reason, "strerror", None) or reason or type(reason).__name__
    )
