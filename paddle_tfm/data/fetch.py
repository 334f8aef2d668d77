"""Files over HTTP(S): mirrors in turn, retried after a break, resumed where they stopped, hashed before use."""

from __future__ import annotations

import http.client
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
from paddle_tfm.protocols import RemoteFile

TIMEOUT_SECONDS = 30.0  # without a byte, after which a connection is abandoned
MAX_FRUITLESS_TRIES = 3  # in a row that bring no byte, then the next mirror
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
    """Fetch a file to `path`. Until it is whole it is called `….part`; an interrupted fetch resumes from that.

    A file whose hash is wrong is deleted and fetched once more, then the next mirror is tried.

    Raises:
        Unreachable: no mirror gives it.
        OSError: it cannot be written.
    """
    part = path.with_name(path.name + ".part")
    progress, reasons = _observer.get()(f"{path.parent.name}/{path.name}", file.size), []
    for url in file.urls:
        if file.sha256 is None:
            part.unlink(missing_ok=True)  # a mixture of two versions could not be recognized
        try:
            for _ in range(2):
                _download(url, part, file.size, progress)
                if file.sha256 in (None, sha256(part)):
                    part.replace(path)
                    return
                part.unlink()
            reasons.append(f"{_host(url)} gives another file (its SHA-256 differs)")
        except Unreachable as error:
            reasons.append(str(error))
    raise Unreachable("; ".join(dict.fromkeys(reasons)) or "no address of it is known")


def _download(url: str, part: Path, size: int | None, progress: Progress) -> None:
    """Bring `part` to its full length, resuming as often as that brings bytes."""
    fruitless = 0
    while True:
        before = _length(part)
        if size is not None and before >= size:
            return
        try:
            _receive(url, part, size, progress)
            return
        except _TransientError as error:
            reason = f"{_host(url)}: {error}"
        fruitless = 0 if _length(part) > before else fruitless + 1
        if fruitless == MAX_FRUITLESS_TRIES:
            raise Unreachable(reason)
        time.sleep(RETRY_SECONDS * 2 ** max(fruitless - 1, 0))


def _receive(url: str, part: Path, size: int | None, progress: Progress) -> None:
    """One request, from where `part` ends.

    Raises:
        _TransientError: the next try may succeed; what came is in `part`.
        Unreachable: it will not.
    """
    have = _length(part)
    with _open(url, have, part) as response:
        if response.headers.get_content_type() == "text/html":
            raise Unreachable(f"{_host(url)} answers with a web page")
        if response.status != 206:
            have = 0  # the server ignores `Range`: all of it comes again
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        if None not in (total, size) and total != size:
            raise Unreachable(f"{_host(url)} gives another file ({total:,} bytes instead of {size:,})")
        with part.open("ab" if have else "wb") as file:
            progress(have, total or size)
            for block in _blocks(response):
                file.write(block)
                have += len(block)
                progress(have, total or size)
    if (total or size) not in (None, have):
        raise _TransientError("the connection ended early")


def _open(url: str, have: int, part: Path) -> http.client.HTTPResponse:
    headers = {"User-Agent": "paddle-tfm", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # `part` is longer than the file
            part.unlink(missing_ok=True)
        elif error.code not in TRANSIENT_STATUSES:
            raise Unreachable(f"{_host(url)} answers {error.code} {error.reason}") from error
        raise _TransientError(f"answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _TransientError(_cause(error)) from error
    if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
        response.close()
        part.unlink(missing_ok=True)
        raise _TransientError("resumes at another position than requested")
    return response


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
        return "no answer in time"
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc or url


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
