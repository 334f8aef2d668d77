"""The runs of a recipe that tunes: trials, and reported runs, with what they chose and with the recipe's own values."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from paddle_tfm.recipe.expansion import Recipe, RunSpec
from paddle_tfm.recipe.merging import override
from paddle_tfm.recipe.sections.space import Point, points
from paddle_tfm.recipe.sections.tuning import BUDGET, FOLDER, TRIAL, UNTUNED, TuneSettings
from paddle_tfm.recipe.validation import validate
from paddle_tfm.recipe.yaml_lines import Origins
from paddle_tfm.units import metric_and_test


def tuned(run: RunSpec, values: Mapping[str, Any], origins: Origins) -> RunSpec:
    """The run with values of the space; `origins` say where the recipe wrote `tune.space`."""
    data, places = deepcopy(run.data), dict(run.origins)
    for path, value in values.items():
        written = f"tune.space.{path}"
        override(data, path, value, places, {path: origins[written]} if written in origins else {})
    return replace(run, data=data, origins=places, settings=validate(data, places)[0])


def trial(run: RunSpec, tune: TuneSettings, number: int, values: Point, origins: Origins, rung: int = -1) -> RunSpec:
    """A trial of a variant, of which `run` is any. `rung`: with how many of its steps, where trials are halved. A trial
    has no further tests but that which chooses the best checkpoint, if the recipe says so."""
    evaluate = {key: value for key, value in run.data["evaluate"].items() if key != "tests"}
    if deciding := metric_and_test(str(evaluate["best"]))[1]:
        evaluate["tests"] = {deciding: run.data["evaluate"]["tests"][deciding]}
    run = replace(run, data={**run.data, "evaluate": evaluate})
    steps, last = tune.rungs(tune.steps_of(run.data))[rung], tune.steps_of(run.data)
    name = f"{FOLDER}/{run.variant}/{TRIAL}{number:02}" + ("" if steps == last else f"-steps-{steps}")
    whole = tuned(run, {**values, BUDGET: steps}, origins)
    return replace(whole, seed=tune.seed, data={**whole.data, "seeds": [tune.seed]}, place=name)


def untuned(run: RunSpec) -> RunSpec:
    """A run as the recipe has it, beside which its tuned one is reported."""
    return replace(run, place=f"{FOLDER}/{run.variant}/{UNTUNED}seed-{run.seed}")


def planned(recipe: Recipe) -> list[RunSpec]:
    """All runs that are known before anything is trained: trials, as long as their space is not widened, and what
    `Recipe.runs` returns; that alone where something is wrong with it."""
    runs, problems = recipe.expand()
    tune = None if problems else recipe.tune()
    return runs if tune is None else [*first_trials(recipe, tune, runs), *own(tune, runs), *runs]


def own(tune: TuneSettings, runs: list[RunSpec]) -> list[RunSpec]:
    """Those of the runs with the recipe's own values, if they are reported too."""
    return [untuned(run) for run in runs if tune.untuned]


def first_trials(recipe: Recipe, tune: TuneSettings, runs: list[RunSpec]) -> list[RunSpec]:
    """The trials of the space as it begins; where they are halved, as many as continue, whichever these will be."""
    variants, values = {run.variant: run for run in runs}, points(tune.axes(), tune.trials)
    return [
        trial(run, tune, number, values[number - 1], recipe.origins, rung)
        for rung in range(len(tune.rungs(1)))
        for number in range(1, tune.left(rung, len(values)) + 1)
        for run in variants.values()
    ]
