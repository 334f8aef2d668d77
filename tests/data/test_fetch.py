"""Fetching from a real server on the loopback interface that does whatever servers do."""

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from paddle_tfm.data import fetch as fetching
from paddle_tfm.data.fetch import Unreachable, fetch, observed
from paddle_tfm.protocols import RemoteFile

DATA = random.Random(1).randbytes(300_000)
ROTTEN = bytes([DATA[0] ^ 1]) + DATA[1:]
SIZE = len(DATA)
SHA = hashlib.sha256(DATA).hexdigest()


# ------------------------------------------------------------------------------------------- what a server may answer


def send(request, content=DATA, cut=None, ranges=True, length=True, start=None, kind="application/octet-stream"):
    """The file, from where the request says; only `cut` bytes of it, if not None."""
    header = request.headers.get("Range") if ranges else None
    begin = int(header.removeprefix("bytes=").removesuffix("-")) if header else 0
    if begin >= len(content):
        return status(request, 416)
    request.send_response(206 if header else 200)
    request.send_header("Content-Type", kind)
    if header:
        shown = begin if start is None else start
        request.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
    if length:
        request.send_header("Content-Length", str(len(content) - begin))
    request.end_headers()
    request.wfile.write(content[begin : len(content) if cut is None else begin + cut])
    return None


def stall(request, cut=0, seconds=60.0):
    """`cut` bytes, then nothing while the server lives or for `seconds`."""
    send(request, cut=cut)
    request.wfile.flush()
    request.server.end.wait(seconds)


def status(request, code):
    request.send_error(code)


def redirect(request, path):
    request.send_response(302)
    request.send_header("Location", path)
    request.end_headers()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        script = self.server.scripts[self.path]
        self.server.requests.append((self.path, self.headers.get("Range")))
        with contextlib.suppress(OSError):  # the client has gone
            (script.pop(0) if len(script) > 1 else script[0])(self)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    """Answers `scripts[path]`, a list of what to do at each request, the last one for ever."""
    monkeypatch.setattr(fetching, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(fetching, "TIMEOUT_SECONDS", 0.5)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.scripts, server.requests, server.end, server.daemon_threads = {}, [], threading.Event(), True
    server.home = f"http://127.0.0.1:{server.server_port}"
    server.host = server.home.removeprefix("http://")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.end.set()
    server.shutdown()
    server.server_close()
    thread.join()


def remote(server, *mirrors, sha256=SHA, size=SIZE):
    """The file, whose mirrors answer by these scripts."""
    for i, script in enumerate(mirrors):
        server.scripts[f"/{i}"] = list(script)
    return RemoteFile("a.bin", tuple(f"{server.home}/{i}" for i in range(len(mirrors))), sha256, size)


def complaint(file, path):
    with pytest.raises(Unreachable) as caught:
        fetch(file, path)
    assert not path.exists()
    return str(caught.value)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ----------------------------------------------------------------------------------------- broken off, wrong, resumed

MORE = DATA + b"more"


def sent(**options):
    """`send` with these options."""
    return partial(send, **options)


@pytest.mark.parametrize(
    "answers, left, known, asked",
    [
        ([send], b"", {}, [None]),
        ([send], b"", {"sha256": None, "size": None}, [None]),
        ([sent(length=False)], b"", {"sha256": None, "size": None}, [None]),
        ([sent(cut=100_000), sent(cut=50_000), send], b"", {}, [None, 100_000, 150_000]),
        ([sent(cut=100_000)], b"", {}, [None, 100_000, 200_000]),  # often, as long as it brings bytes
        ([sent(cut=100_000, length=False), send], b"", {}, [None, 100_000]),  # noticed by the known size
        ([sent(cut=100_000), sent(ranges=False)], b"", {}, [None, 100_000]),  # who ignores `Range` begins again
        ([sent(cut=100_000), sent(start=7), send], b"", {}, [None, 100_000, None]),  # resumes elsewhere
        ([partial(stall, cut=100_000), send], b"", {}, [None, 100_000]),
        ([partial(status, code=500), partial(status, code=429), send], b"", {}, [None] * 3),
        ([sent(content=ROTTEN), send], b"", {}, [None] * 2),
        ([send], DATA[:200_000], {}, [200_000]),  # left by an earlier process
        ([send], DATA, {}, []),
        ([send], ROTTEN[:200_000], {}, [200_000, None]),
        ([send], MORE, {}, [None]),
        ([send], MORE, {"size": None}, [len(MORE), None]),
        ([send], ROTTEN[:200_000], {"sha256": None}, [None]),  # without a hash nothing is resumed
    ],
)
def test_the_file_comes_whole(server, tmp_path, answers, left, known, asked):
    """`left`: what an earlier fetch has left. `asked`: from which byte on, None: from the first without a word."""
    if left:
        (tmp_path / "a.bin.part").write_bytes(left)
    fetch(remote(server, [*answers], **known), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert names(tmp_path) == ["a.bin"]
    assert server.requests == [("/0", begin and f"bytes={begin}-") for begin in asked]


def test_redirects_are_followed_also_when_resuming(server, tmp_path):
    server.scripts["/elsewhere"] = [partial(send, cut=100_000), send]
    fetch(remote(server, [partial(redirect, path="/elsewhere")]), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert [each for each in server.requests if each[0] == "/elsewhere"] == [
        ("/elsewhere", None),
        ("/elsewhere", "bytes=100000-"),
    ]


def test_an_observer_is_called_for_every_byte(server, tmp_path):
    calls = []

    def begin(name, size):
        calls.append((name, size))
        return lambda done, total: calls.append((done, total))

    with observed(begin):
        fetch(remote(server, [sent(cut=100_000), send]), tmp_path / "a.bin")
    assert calls[:2] == [(f"{tmp_path.name}/a.bin", len(DATA)), (0, len(DATA))]
    assert (100_000, len(DATA)) in calls and calls[-1] == (len(DATA), len(DATA))
    done = [first for first, _ in calls[1:]]
    assert done == sorted(done)


def test_without_an_observer_a_line_says_what_is_fetched(server, tmp_path, capsys):
    fetch(remote(server, [send]), tmp_path / "a.bin")
    assert capsys.readouterr().err == f"fetching {tmp_path.name}/a.bin (0.3 MB)\n"


# -------------------------------------------------------------------------------------------------------- wrong answers


def test_corrupted_twice_then_the_next_mirror(server, tmp_path):
    fetch(remote(server, [partial(send, content=ROTTEN)], [send]), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.requests == [("/0", None)] * 2 + [("/1", None)]


@pytest.mark.parametrize(
    "answer, known, said, requests",
    [
        (stall, {}, ": no answer in time", 3),
        (sent(cut=100_000, ranges=False), {}, ": the connection ended early", 4),
        (partial(status, code=503), {}, ": answers 503 Service Unavailable", 3),
        (sent(content=DATA[:77]), {}, " gives another file (77 bytes instead of 300,000)", 1),
        (sent(kind="text/html; charset=utf-8"), {"sha256": None, "size": None}, " answers with a web page", 1),
    ],
)
def test_a_mirror_that_does_not_give_it_is_abandoned(server, tmp_path, monkeypatch, answer, known, said, requests):
    monkeypatch.setattr(fetching, "TIMEOUT_SECONDS", 0.2)
    assert complaint(remote(server, [answer], **known), tmp_path / "a.bin") == server.host + said
    assert len(server.requests) == requests


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_refusal_is_final_for_a_mirror(server, tmp_path, code):
    file = remote(server, [partial(status, code=code)])
    assert complaint(file, tmp_path / "a.bin").startswith(f"{server.host} answers {code} ")
    assert len(server.requests) == 1
    fetch(remote(server, [partial(status, code=code)], [send]), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_nobody_there(server, tmp_path):
    server.shutdown()
    server.server_close()
    file = remote(server, [send], [send])
    assert complaint(file, tmp_path / "a.bin") == f"{server.host}: Connection refused"  # both mirrors said the same
    assert complaint(file._replace(urls=()), tmp_path / "a.bin") == "no address of it is known"


def test_each_mirrors_reason_is_reported(server, tmp_path):
    file = remote(server, [partial(status, code=404)], [partial(send, content=ROTTEN)])
    assert complaint(file, tmp_path / "a.bin") == (
        f"{server.host} answers 404 Not Found; {server.host} gives another file (its SHA-256 differs)"
    )
    assert names(tmp_path) == []


# ------------------------------------------------------------------------------------------------------------ processes

FETCHING = """
import sys
from pathlib import Path
from paddle_tfm.data import datasets
from paddle_tfm.protocols import Dataset, RemoteFile
class Mine(Dataset):
    folder = "mine"
    def files(self):
        return [RemoteFile("a.bin", (sys.argv[1],), sys.argv[2], int(sys.argv[3]))]
print(datasets.ensure(Mine())["a.bin"])
"""


def process(server, folder):
    command = [sys.executable, "-c", FETCHING, f"{server.home}/0", SHA, str(len(DATA))]
    environment = {**os.environ, "PADDLE_TFM_DATA": str(folder)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_fetch_at_once_fetch_once(server, tmp_path):
    def slowly(request):
        time.sleep(1.5)
        send(request)

    remote(server, [slowly])
    processes = [process(server, tmp_path) for _ in range(3)]
    for each in processes:
        out, err = each.communicate(timeout=60)
        assert each.returncode == 0, err
        assert out.strip() == str(tmp_path / "mine" / "a.bin")
    assert (tmp_path / "mine" / "a.bin").read_bytes() == DATA
    assert server.requests == [("/0", None)]


def test_an_interrupted_fetch_is_resumed_by_the_next(server, tmp_path):
    remote(server, [partial(stall, cut=100_000), send])
    first = process(server, tmp_path)
    part = tmp_path / "mine" / "a.bin.part"
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size == 100_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=30)
    assert "KeyboardInterrupt" in err
    assert part.stat().st_size == 100_000
    second = process(server, tmp_path)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert (tmp_path / "mine" / "a.bin").read_bytes() == DATA
    assert server.requests == [("/0", None), ("/0", "bytes=100000-")]
