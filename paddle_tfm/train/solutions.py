"""`equal.json` of a sweep: what was solved for each variant, so that it gets as much as the baseline (`recipe.equal`).
Reading it needs no Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ValidationError

from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text, read_json, write_whole
from paddle_tfm.train.forms import Amount, Count, Form

FILE = "equal.json"
NOT_REPRODUCIBLE = (
    "equal seconds are by the time of a step as it was measured on this machine, once: another machine, or a busier "
    "one, gives other steps and other scores"
)


@dataclass(frozen=True)
class Solution:
    """What one variant is trained with: `setting` is `value`, where its recipe says `was`, so that it gets `reached` of
    the `budget`, of which the baseline gets `wanted`. `origin` is a hash of both recipes, their plugins and their
    texts."""

    budget: str
    setting: str
    was: int
    value: int
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


class _Stored(Form):
    """A solution as its file holds it."""

    budget: str
    setting: str
    was: int
    value: Count
    wanted: Amount
    reached: Amount
    origin: str


def write(folder: Path, solutions: Mapping[str, Solution]) -> None:
    """Write the solutions of the sweep in `folder`, by variant."""
    write_whole(folder / FILE, json_text({name: asdict(each) for name, each in solutions.items()}), shared=True)


def read(folder: Path) -> dict[str, Solution]:
    """The solutions of the sweep in `folder`, by variant; none where there are none, or the file is damaged."""
    try:
        stored = read_json(folder / FILE)
        return {name: Solution(**_Stored.model_validate(each).model_dump()) for name, each in stored.items()}
    except (UserError, ValidationError):
        return {}
