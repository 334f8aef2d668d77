"""`about.json` of a run: what a report says of it beside its numbers. Where and when a run was trained changes no
number, so that none of this is part of its identity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from paddle_tfm.errors import UserError
from paddle_tfm.runs.forms import Amount, Count, Form, read_form

NUM_SAMPLES = 3
FILE = "about.json"


class Sides(Form):
    """A number of each side."""

    source: Amount
    target: Amount


class Training(Form):
    """When and where a run was trained."""

    started: str = ""
    device: str = ""
    processor: str = ""
    cores: Count = 0
    threads: Count = 0
    instructions: str | None = None
    processes: Count = 0
    memory_gib: Amount = 0.0
    system: str = ""
    versions: dict[str, str] = {}
    peak_memory_mib: Amount = 0.0


class About(Form):
    """`about.json`."""

    examples: dict[str, Count] = {}
    samples: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []
    padding: Amount = 0.0
    mean_length: Sides | None = None
    longest_source: dict[str, Count] = {}
    vocabulary: dict[str, Count] = {}
    parameters: Count = 0
    cache_bytes: Count | None = None
    units: dict[str, str] = {}
    trainings: list[Training] = []


def read_about(folder: Path) -> dict[str, Any]:
    """What `about.json` holds; empty where there is none, or where it is damaged: a report can do without."""
    try:
        return read_form(folder / FILE, About)
    except UserError:
        return {}
