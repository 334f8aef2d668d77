"""The files of a sweep: `command.json`, what it trains and asks; `looks.json`, which runs each of its comparisons was
the first to show; and `equal.json`, what was solved for each variant. Reading them needs no Paddle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text, read_json, write_whole
from paddle_tfm.runs.forms import Count, Form, read_form

COMMAND_FILE, LOOKS_FILE, SOLUTIONS_FILE = "command.json", "looks.json", "equal.json"
NOT_REPRODUCIBLE = (
    "equal seconds are by the time of a step as it was measured on this machine, once: another machine, or a busier "
    "one, gives other steps and other scores"
)

# -------------------------------------------------------------------------------------------------------- command.json


class Command(Form):
    """What trains the sweep again; the names of its runs, trained or not, in their order; the baseline that its recipe
    names; what it asks of its seeds; which settings it sets for each variant, by their paths; of a grid, path of a
    factor → variant → its level; of `ablate`, variant → what it lacks of the full model, in words."""

    command: list[str] = []
    runs: list[str] = []
    baseline: str | None = None
    question: dict[str, Any] | None = None
    variants: dict[str, list[str]] = {}
    factors: dict[str, dict[str, str]] = {}
    taken_away: dict[str, str] = {}


def write_command(folder: Path, command: Command) -> None:
    """Write what is recorded of the sweep in `folder`. A sweep whose runs become fewer writes it again: who watches it
    goes by this list."""
    write_whole(folder / COMMAND_FILE, json_text(command.model_dump()), shared=True)


def read_command(folder: Path) -> Command:
    """What is recorded of the sweep in `folder`; nothing where there is no file, or where it is damaged."""
    try:
        return Command(**read_form(folder / COMMAND_FILE, Command))
    except UserError:
        return Command()


def variant_numbers(folder: Path) -> dict[str, int]:
    """Variant → its number, by which `paddle_tfm.colours` colours it: its place in the recipe of the sweep in `folder`.
    Empty where its runs are not recorded."""
    parts = (name.split("/") for name in read_command(folder).runs)  # trials of tuning lie deeper
    variants = dict.fromkeys(names[0] for names in parts if len(names) == 2)
    return {variant: number for number, variant in enumerate(variants)}


# ---------------------------------------------------------------------------------------------------------- looks.json


class _Looks(Form):
    looks: list[list[str]]


def read_looks(sweep: Path) -> dict[str, int]:
    """Name of a run (`post/seed-1`) → the look that was the first to see it, from 0 on; empty where there was none.
    Whoever lists more seeds later continues a test that has looked before (`comparison.statistics.Listed`).

    Raises:
        UserError: the file is damaged.
    """
    stored = read_form(sweep / LOOKS_FILE, _Looks)["looks"] if (sweep / LOOKS_FILE).exists() else []
    return {name: number for number, names in enumerate(stored) for name in names}


def write_look(sweep: Path, runs: Iterable[str]) -> None:
    """Add a look at `runs`; to see again what was seen is none."""
    seen = read_looks(sweep)
    if not (new := sorted(set(runs) - seen.keys())):
        return
    looks: list[list[str]] = [[] for _ in range(max(seen.values(), default=-1) + 1)]
    for name, number in seen.items():
        looks[number].append(name)
    write_whole(sweep / LOOKS_FILE, json_text({"looks": [*looks, new]}), shared=True)


# ---------------------------------------------------------------------------------------------------------- equal.json


class Solution(Form):
    """What one variant is trained with: `setting` is `value`, where its recipe says `was`, so that it gets `reached` of
    the `budget`, of which the baseline gets `wanted`. `origin` is a hash of both recipes, their plugins and their
    texts."""

    model_config = ConfigDict(strict=True, frozen=True)

    budget: str
    setting: str
    was: int
    value: Count
    wanted: float
    reached: float
    origin: str

    def sentence(self, variant: str) -> str:
        """What was done."""
        before = f"instead of {self.was}" if self.value != self.was else "as before"
        amounts = f"{amount(self.budget, self.reached)} (baseline: {amount(self.budget, self.wanted)})"
        return f"equal {self.budget}: {variant} is trained with {self.setting}={self.value} {before}, {amounts}"


def amount(budget: str, value: float) -> str:
    """So much of a budget, with its unit: `86,656 parameters`."""
    if budget == "flops":
        return f"{value:.3e} floating-point operations"
    return f"{value:,.1f} seconds of steps" if budget == "seconds" else f"{value:,.0f} {budget}"


def write_solutions(folder: Path, solutions: Mapping[str, Solution]) -> None:
    """Write the solutions of the sweep in `folder`, by variant."""
    stored = {name: each.model_dump() for name, each in solutions.items()}
    write_whole(folder / SOLUTIONS_FILE, json_text(stored), shared=True)


def read_solutions(folder: Path) -> dict[str, Solution]:
    """The solutions of the sweep in `folder`, by variant; none where there are none, or the file is damaged."""
    try:
        stored = read_json(folder / SOLUTIONS_FILE)
        return {name: Solution.model_validate(each) for name, each in stored.items()}
    except (UserError, ValidationError):
        return {}
