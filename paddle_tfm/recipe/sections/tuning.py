"""Tuning: the settings of every variant are chosen from one space, by as many trials, before its seeds are reported.

tune: {space: {train.schedule.peak: {log: [3e-4, 1e-2]}, train.schedule.warmup: [0, 200, 1000]}, trials: 12}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from paddle_tfm.errors import Problem
from paddle_tfm.language import _
from paddle_tfm.recipe.merging import is_replaced
from paddle_tfm.recipe.sections import Section
from paddle_tfm.recipe.sections.space import Axis, size
from paddle_tfm.units import metric_and_test

EXAMPLE = "`tune: {space: {train.schedule.peak: {log: [3e-4, 1e-2]}}, trials: 12}`"
RECORD = "tuning.json"  # in the comparison's folder: all trials, and what was chosen
FOLDER = "tuning"  # below the comparison's, where trials are
TRIAL = "trial-"
UNTUNED = "untuned-"  # before the name of a run with the recipe's own values
SECTIONS = ("model", "train")  # whose settings may be tuned: any other changes what is measured
BUDGET = "train.steps"


class TuneSettings(Section):
    """What `tune` says.

    Args:
        space: dotted path → axis, as `Axis.parse` reads it. trials: of every variant. steps: of a trial; None: as many
            as the variant's. halving: of the trials of one variant all begin with few steps, and the best 1 / halving
            of them continue with so many times more. widen: how often the space is widened for all variants, where the
            best trial of one lies at its edge. untuned: also report the runs with the recipe's own values. seed: of all
            trials, and of no run that is reported.
    """

    where_a_key_is_missing: ClassVar[str] = f"as in {EXAMPLE}"

    space: dict[str, Any]
    trials: int = Field(ge=2, le=1_000)
    steps: int | None = Field(None, gt=0)
    halving: int | None = Field(None, ge=2, le=10)
    widen: int = Field(1, ge=0, le=10)
    untuned: bool = False
    seed: int = Field(0, ge=0, lt=2**31)

    @field_validator("space")
    @classmethod
    def _readable(cls, space: dict[str, Any]) -> dict[str, Any]:
        if not space:
            raise ValueError(_("names no setting; as in {example}").format(example=EXAMPLE))
        for path, written in space.items():
            try:
                Axis.parse(path, written)
            except ValueError as error:
                raise ValueError(str(error), f".{path}") from None
        return space

    @model_validator(mode="after")
    def _suffices(self) -> TuneSettings:
        if (number := size(self.axes())) < self.trials:
            sentence = _("has {number:.0f} points, but `trials` is {trials}, and no point is tried twice").format(
                number=number, trials=self.trials
            )
            raise ValueError(sentence, ".space")
        return self

    def axes(self) -> list[Axis]:
        """The space as it begins."""
        return [Axis.parse(path, written) for path, written in self.space.items()]

    def rungs(self, steps: int) -> list[int]:
        """The steps after which trials of one variant are halved, and at last `steps`; without halving these alone."""
        if self.halving is None:
            return [steps]
        rounds = int(math.log(self.trials, self.halving) + 1e-9)
        return [steps // self.halving**left for left in range(rounds, -1, -1)]

    def steps_of(self, data: Mapping[str, Any]) -> int:
        """How many steps a trial of a variant has, by its resolved recipe."""
        return self.steps or int(data["train"]["steps"])

    def left(self, rung: int, trials: int) -> int:
        """How many of the trials of one variant are trained on a rung."""
        return trials if self.halving is None else max(1, math.ceil(trials / self.halving**rung))


def is_trial(place: str) -> bool:
    """Whether a run's folder below the comparison's is that of a trial."""
    return place.startswith(f"{FOLDER}/") and place.rpartition("/")[2].startswith(TRIAL)


def is_beside(folder: Path) -> bool:
    """Whether a run's folder is that of a trial, or of a run with the recipe's own values: no seed of its variant."""
    return folder.parent.parent.name == FOLDER and not folder.name.startswith("seed-")


# ---------------------------------------------------------------------------------------------------- what is wrong


def problems(
    tune: TuneSettings,
    overrides: Mapping[str, Mapping],
    recipes: Mapping[str, Mapping],
    seeds: Iterable[int],
    metric: str,
) -> Iterator[Problem]:
    """What is wrong with a space beside the variants that it is for.

    Args:
        overrides: variant → what it sets. recipes: variant → its resolved recipe, of those that are sound. metric: the
            one that decides.
    """
    yield from _path_problems(tune)
    for name, said in overrides.items():
        if name == FOLDER:
            yield Problem(
                f"variants.{name}",
                _("'{folder}' is the folder of the trials; give the variant another name").format(folder=FOLDER),
            )
        for path in tune.space:
            if _sets(said, path):
                sentence = _(
                    "variant '{name}' sets {path} itself, and the space would undo that; keep one of the two"
                ).format(name=name, path=path)
                yield Problem(f"tune.space.{path}", sentence)
    if tune.seed in seeds:
        sentence = _("{seed} is among `seeds`, and a seed that chose the values reports too well; take another").format(
            seed=tune.seed
        )
        yield Problem("tune.seed", sentence)
    for name, data in recipes.items():
        if metric_and_test(metric)[0] not in ("loss", *_metrics(data)):
            yield Problem(
                "tune",
                _("variant '{name}' does not measure '{metric}', by which trials are chosen").format(
                    name=name, metric=metric
                ),
            )
        if tune.rungs(tune.steps_of(data))[0] < 1:
            sentence = _("begins with fewer than 1 of {steps} steps; halve fewer trials, or have more steps").format(
                steps=tune.steps_of(data)
            )
            yield Problem("tune.halving", sentence)


def _metrics(data: Mapping[str, Any]) -> list[str]:
    """The names of the metrics that a recipe measures."""
    specs = data["evaluate"]["metrics"]
    return [str(spec["name"]) if isinstance(spec, Mapping) else str(spec) for spec in specs]


def _path_problems(tune: TuneSettings) -> Iterator[Problem]:
    for path in tune.space:
        if path == BUDGET:
            yield Problem(f"tune.space.{path}", _("is the budget, which is equal for all trials: `tune.steps`"))
        elif path.split(".")[0] not in SECTIONS or "." not in path:
            sentence = _("cannot be tuned: settings of `model` and `train` can, as any other changes what is measured")
            yield Problem(f"tune.space.{path}", sentence)
        for other in tune.space:
            if path.startswith(f"{other}."):
                yield Problem(
                    f"tune.space.{path}",
                    _("stands within {other}, which is in the space too; keep one").format(other=other),
                )


def _sets(said: Mapping, path: str) -> bool:
    """Whether overrides set what stands at a path, or anything within it."""
    return any(
        is_replaced(key, path)
        or (path.startswith(f"{key}.") and isinstance(value, Mapping) and _sets(value, path.removeprefix(f"{key}.")))
        for key, value in said.items()
    )
