"""Searches: the size of the beam, and the penalty by which outputs are ranked."""

from __future__ import annotations

from typing import Any

from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy


def greedy(search: Greedy) -> dict[str, Any]:
    """A beam of one."""
    return {"beam_size": 1}


def beam(search: Beam) -> dict[str, Any]:
    """CTranslate2 ends it sooner than we do (docs/export.md)."""
    return {"beam_size": search.size, "penalty": search.penalty}
