"""Equal budgets: before anything is trained, a setting of each variant is solved so that it gets as much as the
baseline. What is trained then are ordinary runs, whose recipes hold the solutions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from paddle_tfm.data.corpus import Corpus, load_corpus
from paddle_tfm.errors import Problem, RecipeError
from paddle_tfm.model.build import build
from paddle_tfm.model.size import matrix_parameters, num_parameters, training_flops
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.merging import override
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.recipe.sections import ladder
from paddle_tfm.recipe.sections.equal import Equal, of, value_at
from paddle_tfm.recipe.validation import locate, validate
from paddle_tfm.registry import Registry
from paddle_tfm.runs.sweep_files import NOT_REPRODUCIBLE, Solution, read_solutions, write_solutions
from paddle_tfm.sweep.cells import OncePerTexts
from paddle_tfm.sweep.probe import probes
from paddle_tfm.train.run import Run, create

MOST_OFF = 0.02  # of the baseline's parameters: farther away is not equal


def equalized(
    recipe: Recipe,
    plans: Mapping[str, Plan],
    registry: Registry,
    folder: Path | None = None,
    workers: int = 1,
) -> tuple[Recipe, list[str]]:
    """The recipe with its solutions, and a sentence for each that is new. Those in `folder` are kept as long as they
    are of these recipes, plugins and texts, so that a sweep that is resumed, and each of its cells, has the same; new
    ones are written there.

    Args:
        plans: of every variant as it is trained, sound. workers: how many runs will share this machine.
    Raises:
        RecipeError: a variant cannot get as much as the baseline.
        UserError: data cannot be read, or the folder cannot be written.
    """
    wanted = of(recipe.data)
    if not wanted.setting:
        return recipe, []
    solver, solutions, solved = _Solver(recipe, wanted, registry, workers), {}, set()
    origins = {(one, base): solver.origin(plans[one], plans[base]) for one, base in _pairs(recipe, plans)}
    stored = read_solutions(folder) if folder else {}
    for (variant, base), origin in origins.items():
        known = stored.get(variant)
        if known is None or known.origin != origin:
            known = solver.solve(plans[variant], plans[base], origin)
            solved.add(variant)
        solutions[variant] = known
    if folder and solved:
        write_solutions(folder, solutions)
    sentences = [solutions[variant].sentence(variant) for variant in solutions if variant in solved]
    if sentences and wanted.budget == "seconds":
        sentences.append(NOT_REPRODUCIBLE)
    return replace(recipe, solved={name: {each.setting: each.value} for name, each in solutions.items()}), sentences


def _pairs(recipe: Recipe, plans: Mapping[str, Plan]) -> Iterator[tuple[str, str]]:
    """Each variant as it is trained, with the baseline of its size."""
    names = list(recipe.written_variants())
    baseline = str(recipe.data.get("baseline") or names[0])
    sizes: list[str | None] = [*ladder.sizes_of(recipe.data)]
    for size in sizes or [None]:
        for name in names:
            if name != baseline and ladder.at(name, size) in plans:
                yield ladder.at(name, size), ladder.at(baseline, size)


class Unreachable(Exception):
    """The quantity does not change with the number, or is not to be had within its bounds: `value` at `number` is as
    near as it comes."""

    def __init__(self, number: int, value: float):
        self.number, self.value = number, value
        super().__init__(f"{value:g} at {number}")


def nearest(
    quantity: Callable[[int], float], wanted: float, start: int, step: int = 1, most: int = 2**20
) -> tuple[int, float]:
    """The multiple of `step`, at least one and at most `most`, whose `quantity` is nearest to `wanted`, and what it is
    there.

    Raises:
        Unreachable: all numbers are on one side of it.
    """
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in known:
            known[place] = quantity(place * step)
        return known[place]

    low = high = max(1, start // step)
    last = most // step
    while at(high) < wanted and high < last:
        low, high = high, min(2 * high, last)
        if at(high) <= at(low):
            raise Unreachable(high * step, at(high))
    while at(low) > wanted and low > 1:
        low, high = max(1, low // 2), low
        if at(low) >= at(high):
            raise Unreachable(low * step, at(low))
    if not at(low) <= wanted <= at(high):
        place = min((low, high), key=lambda each: abs(at(each) - wanted))
        raise Unreachable(place * step, at(place))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle) <= wanted else (low, middle)
    place = min((low, high), key=lambda each: abs(at(each) - wanted))
    return place * step, at(place)


def nearest_sum(parts: Iterator[int], wanted: float) -> tuple[int, int]:
    """After how many of `parts`, one at least and each above 0, their sum is nearest to `wanted`, and what it is
    there; of two that are equally near, the larger."""
    number, before, after = 0, 0, 0
    while after < wanted or not number:
        number, before, after = number + 1, after, after + next(parts)
    return (number, after) if number == 1 or after - wanted <= wanted - before else (number - 1, before)


class _Solver:
    """Measures variants, each once."""

    def __init__(self, recipe: Recipe, wanted: Equal, registry: Registry, workers: int):
        self.recipe, self.wanted, self.registry, self.workers = recipe, wanted, registry, workers
        self.corpus_of = OncePerTexts(load_corpus)
        self.measured: dict[str, _Measured] = {}

    def origin(self, plan: Plan, base: Plan) -> str:
        """A hash of what a solution depends on."""
        of_both: list = [list(self.wanted)]
        for each in (plan, base):
            of_both.append({key: value for key, value in each.run.data.items() if key != "seeds"})
            of_both += [each.providers(), self.corpus_of(each).fingerprint]
        return hashlib.sha256(json.dumps(of_both, sort_keys=True).encode()).hexdigest()[:16]

    def solve(self, plan: Plan, base: Plan, origin: str) -> Solution:
        one, other, setting = self._measure(plan), self._measure(base), self.wanted.setting
        was = value_at(plan.run.data, setting) or 0
        try:
            value, reached, wanted = getattr(self, f"_by_{self.wanted.budget}")(one, other, was)
        except Unreachable as end:
            sentence = (
                f"{setting} cannot be solved for '{plan.run.variant}': at {end.number} it has {end.value:,.0f} "
                f"parameters, as near as it comes to the {other.parameters():,} of '{base.run.variant}'"
            )
            problem = locate(Problem("equal", sentence), self.recipe.origins)
            raise RecipeError(self.recipe.source, [problem]) from end
        return Solution(
            budget=self.wanted.budget,
            setting=setting,
            was=was,
            value=value,
            wanted=wanted,
            reached=reached,
            origin=origin,
        )

    def _measure(self, plan: Plan) -> _Measured:
        if plan.run.variant not in self.measured:
            self.measured[plan.run.variant] = _Measured(plan, self.corpus_of(plan), self.registry, self.workers)
        return self.measured[plan.run.variant]

    def _by_tokens(self, one: _Measured, other: _Measured, was: int) -> tuple[int, float, float]:
        wanted = other.tokens(other.steps)
        return (*one.steps_for(wanted), wanted)

    def _by_flops(self, one: _Measured, other: _Measured, was: int) -> tuple[int, float, float]:
        wanted = training_flops(other.matrices, other.tokens(other.steps))
        each = training_flops(max(one.matrices, 1), 1)
        steps, tokens = one.steps_for(wanted / each)
        return steps, tokens * each, wanted

    def _by_seconds(self, one: _Measured, other: _Measured, was: int) -> tuple[int, float, float]:
        wanted = other.steps * other.seconds
        steps = max(1, round(wanted / one.seconds))
        return steps, steps * one.seconds, wanted

    def _by_parameters(self, one: _Measured, other: _Measured, was: int) -> tuple[int, float, float]:
        setting, wanted = self.wanted.setting, other.parameters()
        heads = one.plan.settings.model.num_heads
        # Heads divide the width, and what rotates needs pairs in each.
        step = 2 * heads if setting == "model.d_model" else 1
        value, reached = nearest(lambda number: one.parameters(setting, number), wanted, was, step)
        if abs(reached - wanted) > MOST_OFF * wanted:
            raise Unreachable(value, reached)
        return value, reached, wanted


class _Measured:
    """One variant: its size, its tokens, its time."""

    def __init__(self, plan: Plan, corpus: Corpus, registry: Registry, workers: int):
        self.plan, self.registry, self.workers = plan, registry, workers
        self.run: Run = create(plan, Path(), corpus)
        self.matrices, self.steps = matrix_parameters(self.run.model), plan.settings.train.steps

    def parameters(self, setting: str = "", value: int = 0) -> int:
        """Trainable parameters, of the recipe with one setting changed where one is named.

        Raises:
            RecipeError: the setting's value is refused.
        """
        if not setting:
            return self.run.parameters()
        data = deepcopy(self.plan.run.data)
        override(data, setting, value, {}, {})
        settings, wrong = validate(data, self.plan.run.origins)
        if wrong:
            raise RecipeError(self.plan.run.recipe, wrong)
        plan = plan_run(replace(self.plan.run, data=data, settings=settings), self.registry)
        codec = self.run.codec
        model = build(plan.sound_model, len(codec.source_vocabulary), len(codec.target_vocabulary))
        return num_parameters(model)

    def _steps(self) -> Iterator[int]:
        """The target tokens of each step."""
        batches, accumulate = self.run.stream().planned_tokens(), self.plan.settings.train.accumulate
        while True:
            yield sum(next(batches) for _ in range(accumulate))

    def tokens(self, steps: int) -> int:
        """Target tokens of so many steps."""
        return sum(tokens for _, tokens in zip(range(steps), self._steps()))

    def steps_for(self, wanted: float) -> tuple[int, int]:
        """After which step the tokens are nearest to `wanted`, and what they are there."""
        return nearest_sum(self._steps(), wanted)

    @cached_property
    def seconds(self) -> float:
        """Of a step, measured now."""
        (probe,) = probes([self.plan], self.registry, self.workers)
        return probe.step
