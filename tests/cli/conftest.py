"""A run to call the command line on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import TINY, Done, call


class Trained(NamedTuple):
    """A comparison's folder, its only run's, and what the command said."""

    out: Path
    folder: Path
    done: Done


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Trained:
    """`run reverse`, once, never interrupted. Tests leave it as it is."""
    out = tmp_path_factory.mktemp("trained") / "reverse"
    done = call("run", "reverse", *TINY, "--out", out)
    assert done.status == 0, done.err
    return Trained(out, out / "default" / "seed-1", done)
