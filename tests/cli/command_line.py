"""`paddle-tfm` called as its console script is, and a recipe made tiny."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
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


def in_terminal(width: int, *arguments, **variables) -> str:
    """What a terminal of that many columns gets, escapes and all."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "paddle_tfm", *map(str, arguments)]
    environment |= {"TERM": "xterm-256color", **variables}
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True)
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        output += part
    os.close(ours)
    assert child.wait() == 0, output.decode()
    return output.decode().replace("\r\n", "\n")


def write_recipe(folder: Path, text: str, shipped: str = "reverse", *overrides: str) -> Path:
    """A recipe `mine.yaml`, and beside it `tiny.yaml` for its base: a shipped one made tiny."""
    (folder / "tiny.yaml").write_text(call("show", shipped, *TINY, *overrides).out, "utf-8")
    file = folder / "mine.yaml"
    file.write_text(text, "utf-8")
    return file
