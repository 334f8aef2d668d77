"""What a recipe asks of its comparison: which difference matters, and when it may look."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from paddle_tfm.comparison.statistics import Listed, Looks
from paddle_tfm.recipe.sections.seeds import SeedPlan
from paddle_tfm.runs.sweep_files import COMMAND_FILE, read_command

if TYPE_CHECKING:
    from paddle_tfm.recipe.expansion import Recipe


@dataclass(frozen=True)
class Question:
    """`plan` is None where seeds were listed. `smallest_effect` is in the unit in which people
    read the metric: points for shares and scores."""

    plan: SeedPlan | None = None
    smallest_effect: float | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> Question:
        """What a recipe without problems asks."""
        return cls(recipe.seed_plan(), recipe.data.get("smallest_effect"))

    @classmethod
    def recorded(cls, folder: Path, report: Callable[[str], None] = lambda text: None) -> Question:
        """What the sweep in `folder` asks, by its `command.json`; as of listed seeds where that does not say it, or is
        damaged, of which `report` gets a sentence."""
        asked = read_command(folder).question or {}
        try:
            plan = SeedPlan.model_validate(asked["seeds"]) if asked.get("seeds") else None
        except ValidationError:
            report(
                f"{folder / COMMAND_FILE}: damaged: no recipe can ask this `question`: {reprlib.repr(asked)}; the "
                "runs are compared without it"
            )
            return cls()
        return cls(plan, asked.get("smallest_effect"))

    def data(self) -> dict[str, object]:
        """What `comparison.json` holds."""
        seeds = None if self.plan is None else self.plan.model_dump(exclude_defaults=True)
        return {"seeds": seeds, "smallest_effect": self.smallest_effect}

    def rule(self, looks: Sequence[int] = ()) -> Looks:
        """When it looks; of listed seeds, whenever somebody does: `looks` were after so many pairs."""
        return Listed(looks) if self.plan is None else Looks(self.plan.looks)
