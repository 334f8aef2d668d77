"""Fetching from a real server on the loopback interface that does whatever servers do."""

import contextlib
import hashlib
import random
import threading
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


def send(request, content=DATA, cut=None, length=True, kind="application/octet-stream"):
    """The file; only `cut` bytes of it, if not None."""
    request.send_response(200)
    request.send_header("Content-Type", kind)
    if length:
        request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content if cut is None else content[:cut])


def stall(request, cut=0, seconds=60.0):
    """`cut` bytes, then nothing while the server lives or for `seconds`."""
    send(request, cut=cut)
    request.wfile.flush()
    request.server.end.wait(seconds)


def status(request, code):
    request.send_error(code)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        script = self.server.scripts[self.path]
        self.server.requests.append(self.path)
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


# --------------------------------------------------------------------------------------------------- broken off, wrong


def sent(**options):
    """`send` with these options."""
    return partial(send, **options)


@pytest.mark.parametrize(
    "answers, known",
    [
        ([send], {}),
        ([sent(length=False)], {"sha256": None, "size": None}),
        ([sent(cut=100_000), sent(cut=50_000), send], {}),
        ([sent(cut=100_000, length=False), send], {}),  # noticed by the known size
        ([partial(stall, cut=100_000), send], {}),
        ([partial(status, code=500), partial(status, code=429), send], {}),
        ([sent(content=ROTTEN), send], {}),
    ],
)
def test_the_file_comes_whole(server, tmp_path, answers, known):
    fetch(remote(server, [*answers], **known), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert names(tmp_path) == ["a.bin"]
    assert server.requests == ["/0"] * len(answers)


def test_an_observer_is_called_for_every_byte(server, tmp_path):
    calls = []

    def begin(name, size):
        calls.append((name, size))
        return lambda done, total: calls.append((done, total))

    with observed(begin):
        fetch(remote(server, [sent(cut=100_000), send]), tmp_path / "a.bin")
    assert calls[:2] == [(f"{tmp_path.name}/a.bin", len(DATA)), (0, len(DATA))]
    assert (100_000, len(DATA)) in calls and calls[-1] == (len(DATA), len(DATA))
    assert calls.count((0, len(DATA))) == 2  # each try begins again


def test_without_an_observer_a_line_says_what_is_fetched(server, tmp_path, capsys):
    fetch(remote(server, [send]), tmp_path / "a.bin")
    assert capsys.readouterr().err == f"fetching {tmp_path.name}/a.bin (0.3 MB)\n"


# -------------------------------------------------------------------------------------------------------- wrong answers


def test_corrupted_again_and_again_then_the_next_mirror(server, tmp_path):
    fetch(remote(server, [sent(content=ROTTEN)], [send]), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.requests == [*["/0"] * fetching.TRIES, "/1"]


@pytest.mark.parametrize(
    "answer, known, said, requests",
    [
        (stall, {}, " does not answer in time", 3),
        (sent(cut=100_000), {}, " ends the connection early", 3),
        (partial(status, code=503), {}, " answers 503 Service Unavailable", 3),
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
    fetch(remote(server, [partial(status, code=code)], [send]), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.requests == ["/0", "/1"]


def test_nobody_there(server, tmp_path):
    server.shutdown()
    server.server_close()
    file = remote(server, [send], [send])
    assert (
        complaint(file, tmp_path / "a.bin") == f"{server.host} cannot be reached: Connection refused"
    )  # both mirrors said the same
    assert complaint(file._replace(urls=()), tmp_path / "a.bin") == "no address of it is known"


def test_each_mirrors_reason_is_reported(server, tmp_path):
    file = remote(server, [partial(status, code=404)], [partial(send, content=ROTTEN)])
    assert complaint(file, tmp_path / "a.bin") == (
        f"{server.host} answers 404 Not Found; {server.host} gives another file (its SHA-256 differs)"
    )
    assert names(tmp_path) == []
