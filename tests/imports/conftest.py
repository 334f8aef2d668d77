"""The command line, as tests call it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from paddle_tfm.cli import main


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def call(capsys):
    """A command line → status, output, errors."""

    def to(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out = capsys.readouterr()
        return Done(int(end.value.code or 0), out.out, out.err)

    return to
