"""`paddle-tfm` called as its console script is, and a recipe made tiny."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import signal
import struct
import sys
import termios
from pathlib import Path
from typing import NamedTuple

from recipe_text import TINY_MODEL

from paddle_tfm.cli import main

TINY_TASK = ("task.train=80", "task.valid=6", "task.test=6")
TINY = (
    *TINY_TASK,
    *(
        "task.max_length=4",
        "train.max_tokens=128",
        "model.max_length=12",
    ),  # how far a search of an untrained model goes
    *TINY_MODEL,
    *("model.dropout=0.1", "train.steps=4", "evaluate.every=2", "evaluate.metrics=[exact_match, token_accuracy]"),
)


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


def call(*arguments: object, stdin: str | bytes = b"") -> Done:
    """`paddle-tfm ARGUMENTS` within this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    pipe = io.TextIOWrapper(io.BytesIO(stdin if isinstance(stdin, bytes) else stdin.encode()), "utf-8")
    before, sys.stdin = sys.stdin, pipe
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([str(argument) for argument in arguments])
    except SystemExit as exit:
        status = exit.code
    finally:
        sys.stdin = before
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Done(status, *texts)


def on_a_terminal(*arguments, rows=24, columns=80, send=signal.SIGKILL, when=None, **environment) -> tuple[int, str]:
    """Status and text of `paddle-tfm ARGUMENTS` on a terminal, escapes and all; it gets a signal as soon as
    `when(text)` holds."""
    process, end = pty.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # A terminal of its own, whoever runs these tests.
        kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS", "LINES")}
        command = [sys.executable, "-m", "paddle_tfm", *map(str, arguments)]
        os.execve(sys.executable, command, {**kept, "TERM": "xterm-256color", **environment})
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    text = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(end, 65536):
            text += part
            if when and when(text.decode(errors="replace")):
                os.kill(process, send)
                when = None
    os.close(end)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), text.decode().replace("\r\n", "\n")


def in_terminal(columns: int, *arguments) -> str:
    """What a terminal of that many columns gets of a command that ends well."""
    status, text = on_a_terminal(*arguments, columns=columns)
    assert status == 0, text
    return text


def write_recipe(folder: Path, text: str, shipped: str = "reverse", *overrides: str) -> Path:
    """A recipe `mine.yaml`, and beside it `tiny.yaml` for its base: a shipped one made tiny."""
    (folder / "tiny.yaml").write_text(call("show", shipped, *TINY, *overrides).out, "utf-8")
    file = folder / "mine.yaml"
    file.write_text(text, "utf-8")
    return file
