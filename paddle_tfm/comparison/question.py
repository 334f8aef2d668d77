"""What a recipe asks of its comparison: which difference matters, and when it may look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_tfm.comparison.statistics import Looks, OneLook, OpenEnded, Rule
from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.recipe.seeds import SeedPlan
from paddle_tfm.train.about import read_question

if TYPE_CHECKING:
    from paddle_tfm.recipe.expansion import Recipe


@dataclass(frozen=True)
class Question:
    """`plan` is None where seeds were listed: one look at all of them. `smallest_effect` is in the unit in which people
    read the metric: points for shares and scores."""

    plan: SeedPlan | None = None
    smallest_effect: float | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> Question:
        """What a recipe without problems asks."""
        return cls(recipe.seed_plan(), recipe.data.get("smallest_effect"))

    @classmethod
    def recorded(cls, folder: Path) -> Question:
        """What the sweep in `folder` asks: by its `command.json`, which is there from its first run on, or else by its
        `comparison.json`; one look at all seeds where neither says it, or what they hold is damaged."""
        question = read_question(folder) or _of_comparison(folder)
        try:
            plan = None if question.get("seeds") is None else SeedPlan.model_validate(question["seeds"])
            smallest = question.get("smallest_effect")
            return cls(plan, None if smallest is None else float(smallest))
        except (ValueError, TypeError):
            return cls()

    def data(self) -> dict[str, object]:
        """What `comparison.json` holds."""
        seeds = None if self.plan is None else self.plan.model_dump(exclude_defaults=True)
        return {"seeds": seeds, "smallest_effect": self.smallest_effect}

    def rule(self) -> Rule:
        """When it looks."""
        if self.plan is None:
            return OneLook()
        return OpenEnded() if self.plan.open_ended else Looks(self.plan.looks)


def _of_comparison(folder: Path) -> Mapping[str, Any]:
    try:
        question = read_json(folder / "comparison.json").get("question")
    except UserError:
        return {}
    return question if isinstance(question, Mapping) else {}
