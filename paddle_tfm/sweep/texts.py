"""Texts that several runs share: what is made of them is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from paddle_tfm.recipe.further_tests import texts_key
from paddle_tfm.recipe.plan import Plan

T = TypeVar("T")


class OncePerTexts(Generic[T]):
    """plan → what `make` makes of its texts, for all plans of the same texts once.

    Args:
        make: reads, or fetches, the texts of a plan's run.
    """

    def __init__(self, make: Callable[[Plan], T]):
        self.make, self.known = make, dict[str, T]()

    def __call__(self, plan: Plan) -> T:
        """Raises: what `make` raises."""
        key = texts_key(plan.run.data)
        if key not in self.known:
            self.known[key] = self.make(plan)
        return self.known[key]
