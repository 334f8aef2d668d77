"""What a recipe claims before its first run: the `claims:` section, and what is wrong with one.

claims:
  warm-up-saves-post-norm:
    says: Without warm-up a deep post-norm model does not learn what it learns with it.
    source: arXiv:2002.04745
    metric: exact_match
    variant: post-warm-up
    over: post
    above: 20            # points: the smallest effect that counts
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from paddle_tfm import units
from paddle_tfm.errors import Problem, unknown
from paddle_tfm.recipe.sections import Section
from paddle_tfm.recipe.sections.further_tests import why_not_measured

GRADIENT_NORM = "gradient_norm"  # at initialization, by parameter: what `metric` may name beside the recipe's metrics
OF_A_DIFFERENCE = ("above", "below", "within")
OF_A_VALUE = ("at_least", "at_most")
SOURCES = "an arXiv number (arXiv:2002.04745), `piloted here` or `of our own`"


class ClaimSettings(Section):
    """One claim: a sentence, where it is from, and which numbers decide it.

    Args:
        says: the claim in words. source: an arXiv number with whatever stands beside it, `piloted here`, `of our own`.
        metric: one of the recipe's, `loss`, or `gradient_norm`: that of the first step, before clipping. Of a further
            test (`evaluate.tests`): `exact_match@beyond`.
        split: what it is of; `test` is the validation split where a task has no other.
        at: of `gradient_norm`: a parameter, or all parameters below a path; `layers.-1` is the last layer.
        divided_by: of `gradient_norm`: another such place, by whose norm that of `at` is divided.
        variant, over: the claim is about `variant` alone, or about `variant` compared with `over`, paired by seed.
        measure: how they are compared. difference: variant − over, in the metric's unit (shares in points); percent:
            100 · (variant / over − 1); ratio: variant / over.
        above, below, within: of a difference or a percentage: at least so much above or below, or closer than that.
            0: the direction alone is claimed.
        at_least, at_most: of a value (shares in percent) or of a ratio.
    """

    where_a_key_is_missing: ClassVar[str] = "a claim needs `says`, `source`, `metric` and `variant`"

    says: str = Field(min_length=1)
    source: str
    metric: str
    split: Literal["test", "valid"] = "test"
    at: str | None = None
    divided_by: str | None = None
    variant: str
    over: str | None = None
    measure: Literal["difference", "percent", "ratio"] = "difference"
    above: float | None = Field(None, ge=0)
    below: float | None = Field(None, ge=0)
    within: float | None = Field(None, gt=0)
    at_least: float | None = None
    at_most: float | None = None

    @property
    def of_a_ratio(self) -> bool:
        """Whether it is about a ratio: of two variants, or of two places in one."""
        return self.measure == "ratio" or (self.divided_by is not None and self.over is None)

    @field_validator("source")
    @classmethod
    def _cited(cls, source: str) -> str:
        if not re.search(r"arXiv:\d{4}\.\d{4,5}\b|^piloted here|^of our own", source):
            raise ValueError(f"must have {SOURCES}, but is {source!r}")
        return source

    @model_validator(mode="after")
    def _decidable(self) -> ClaimSettings:
        compares = self.over is not None and self.measure != "ratio"
        allowed, other = (OF_A_DIFFERENCE, OF_A_VALUE) if compares else (OF_A_VALUE, OF_A_DIFFERENCE)
        names = self._set(allowed)
        if strange := self._set(other):
            about = "a difference" if compares else "a value or a ratio"
            raise ValueError(f"`{strange[0]}` does not belong to {about}; use {_any_of(allowed)}", f".{strange[0]}")
        if not names:
            effect = "smallest effect" if self.over is not None else "limit"
            raise ValueError(f"has no {effect}, without which nothing can be decided; add {_any_of(allowed)}")
        if compares and len(names) > 1:
            raise ValueError(f"has {' and '.join(f'`{name}`' for name in names)}; make two claims of it")
        if self.split == "valid" and units.metric_and_test(self.metric)[1]:
            raise ValueError(f"`{self.metric}` says already what it is of; leave `split` out", ".split")
        self._check_places()
        self._check_limits()
        return self

    def _check_places(self) -> None:
        if self.over is None and self.measure != "difference":
            raise ValueError(f"a {self.measure} compares two variants; add `over`", ".measure")
        if self.metric == GRADIENT_NORM and self.at is None:
            raise ValueError(f"`{GRADIENT_NORM}` needs `at`, a path in the model such as decoder.layers.-1")
        if self.metric != GRADIENT_NORM and self.at is not None:
            raise ValueError(f"goes with `metric: {GRADIENT_NORM}`", ".at")
        if self.divided_by is not None and self.at is None:
            raise ValueError("goes with `at`", ".divided_by")

    def _check_limits(self) -> None:
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"must be at most `at_most` ({self.at_most:g}), but is {self.at_least:g}", ".at_least")
        if self.measure == "percent" and max(self.below or 0, self.within or 0) >= 100:
            name = "below" if self.below is not None else "within"
            raise ValueError("must be less than 100 percent", f".{name}")

    def _set(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if getattr(self, name) is not None]


def _any_of(names: Sequence[str]) -> str:
    return f"{', '.join(f'`{name}`' for name in names[:-1])} or `{names[-1]}`"


def problems(claims: Mapping[str, ClaimSettings], data: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """What of the claims is not in the recipe.

    Args:
        data: variant → its resolved recipe.
    """
    for name, claim in claims.items():
        for key in ("variant", "over"):
            variant = getattr(claim, key)
            if variant is not None and variant not in data:
                yield Problem(f"claims.{name}.{key}", unknown("variant", variant, data))
        if claim.over == claim.variant:
            yield Problem(f"claims.{name}.over", f"'{claim.over}' would be compared with itself")
        for variant in dict.fromkeys((claim.variant, claim.over)):
            recipe = data.get(variant or "")
            if recipe is not None and claim.metric != GRADIENT_NORM and (sentence := _unmeasured(claim, recipe)):
                yield Problem(f"claims.{name}.metric", sentence)
                break


def _unmeasured(claim: ClaimSettings, data: Mapping[str, Any]) -> str:
    """A sentence where a run's recipe does not measure what is claimed; else ""."""
    evaluate = data.get("evaluate") or {}
    specs = evaluate.get("metrics") or []
    names = [str(spec.get("name")) if isinstance(spec, Mapping) else str(spec) for spec in specs]
    of_a_step = [] if units.metric_and_test(claim.metric)[1] else [GRADIENT_NORM]
    return why_not_measured(claim.metric, [*names, "loss", *of_a_step], evaluate.get("tests") or {})
