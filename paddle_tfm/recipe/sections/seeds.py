"""How many seeds a recipe trains: a list of them, or as many as its question needs.

seeds: [1, 2, 3]
seeds: {at_most: 12, looks: [3, 5, 8, 12]}   # after 3, 5 and 8 seeds, variants that are settled get no more
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import Discriminator, Field, Tag, model_validator

from paddle_tfm.language import _
from paddle_tfm.recipe.sections import Section

FEWEST = 3  # seeds at a first look
EXAMPLE = "`seeds: {at_most: 12, looks: [3, 5, 8, 12]}`"
LIST, PLAN = "list of seeds", "plan of seeds"  # the two forms, as pydantic's errors name them


class SeedPlan(Section):
    """Seeds 1 … `at_most`, added only while a variant is undetermined.

    Args:
        looks: after how many seeds it is decided which variants get more; the last is `at_most`.
    """

    where_a_key_is_missing: ClassVar[str] = f"as in {EXAMPLE}"

    at_most: int = Field(ge=FEWEST, le=1_000)
    looks: list[int] = Field(min_length=1)

    @model_validator(mode="after")
    def _require_looks(self) -> SeedPlan:
        looks, path = self.looks, ".looks"
        if any(one >= other for one, other in pairwise(looks)):
            raise ValueError(_("must rise, but are {look}").format(look=looks), path)
        if looks[0] < FEWEST:
            text = _("must begin after {fewest} seeds or more, but begin after {look}")
            raise ValueError(text.format(fewest=FEWEST, look=looks[0]), path)
        if looks[-1] > self.at_most:
            text = _("look after {look} seeds, but `at_most` is {at_most}")
            raise ValueError(text.format(look=looks[-1], at_most=self.at_most), path)
        if looks[-1] < self.at_most:
            text = _("end after {look} seeds, so that none would be at `at_most`, {at_most}")
            raise ValueError(text.format(look=looks[-1], at_most=self.at_most), path)
        return self


Seed = Annotated[int, Field(ge=0, lt=2**31)]
Seeds = Annotated[
    Annotated[list[Seed], Field(min_length=1), Tag(LIST)] | Annotated[SeedPlan, Tag(PLAN)],
    Discriminator(lambda value: PLAN if isinstance(value, (Mapping, SeedPlan)) else LIST),
]


def all_seeds(seeds: list[int] | SeedPlan) -> list[int]:
    """Every seed that may be trained, in order."""
    return seeds if isinstance(seeds, list) else list(range(1, seeds.at_most + 1))
