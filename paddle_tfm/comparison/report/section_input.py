"""What a report says of runs beside their scores, read from their folders: recipes, texts, machine, command. All of it
may be missing, in a folder that was copied in part."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from paddle_tfm import units
from paddle_tfm.comparison.columns import how_many_seeds
from paddle_tfm.comparison.gaps import Side, side_of
from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.figures.line_chart import Series
from paddle_tfm.comparison.runs.curves import Point, RunCurves, read_curves
from paddle_tfm.comparison.runs.finished import Result, grouped
from paddle_tfm.comparison.runs.trained_from import recipe_of
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, counted
from paddle_tfm.predictions import predictions_of
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.recipe.differences import with_defaults
from paddle_tfm.registry import Registry
from paddle_tfm.runs.forms import NUM_SAMPLES
from paddle_tfm.runs.sweep_files import read_command
from paddle_tfm.units import in_shell, listed

if TYPE_CHECKING:
    from paddle_tfm.train.run import Run


T = TypeVar("T")
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class Facts:
    """The facts of a comparison: of each variant its recipe; of all runs together what they share.

    Args:
        chosen: texts on which attention is shown; of none, some of the test's.
    """

    def __init__(self, comparison: Comparison, registry: Registry, chosen: Sequence[str] = ()):
        self.comparison, self.registry, self.chosen = comparison, registry, chosen
        self._made: dict[Callable[[Facts], Any], Any] = {}
        self._loaded: dict[Path, Run] = {}
        self.remarks: list[str] = []  # on what was loaded: code that changed since
        self.groups = grouped(comparison.runs)
        self.recipes = {variant: recipe_of(runs[0].folder) for variant, runs in self.groups.items()}
        self.abouts = [run.about for run in comparison.runs]
        self.baseline = comparison.baseline
        self.recipe = self.recipes[self.baseline]
        self.about = self.groups[self.baseline][0].about
        baseline_first = sorted(self.groups, key=lambda variant: variant != self.baseline)
        self.numbers = {variant: comparison.numbers[variant] for variant in baseline_first}

    def once(self, make: Callable[[Facts], T]) -> T:
        """`make(facts)`, computed the first time that it is asked for: a section needs it to say whether it applies,
        and again for each thing that it shows."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    def sides(self) -> list[Side]:
        """All that is known of each variant, the baseline first."""
        return self.once(_sides)

    def lines(self, points: Callable[[str], Sequence[Point]]) -> list[Series]:
        """A line for each variant that has points, the best on top."""
        rows = reversed(self.comparison.rows)
        drawn = [(row.variant, made) for row in rows if (made := points(row.variant))]
        return [Series(self.numbers[variant], variant, made) for variant, made in drawn]

    def load(self, result: Result) -> Run:
        """The run with the model of its best checkpoint.

        Raises:
            UserError: it cannot be loaded.
        """
        from paddle_tfm.train.run import load_run

        if result.folder not in self._loaded:
            self._loaded[result.folder] = load_run(result.folder, self.registry, warn=self.remarks.append)
        return self._loaded[result.folder]

    def models(self, result: Result) -> Run | None:
        """The same; None where it cannot be loaded."""
        with suppress(UserError):
            return self.load(result)
        return None

    def run_of(self, variant: str, seed: int | None = None) -> Result:
        """The run of a variant that stands for it: of a seed, where it has that, or else the first that did not
        diverge."""
        runs = sorted(
            self.groups[variant], key=lambda run: (run.seed != seed, bool(run.results.get("diverged")), run.seed)
        )
        return runs[0]

    @cached_property
    def curves(self) -> dict[str, list[RunCurves]]:
        """variant → what the logs of its runs hold."""
        return {variant: [read_curves(run.folder) for run in runs] for variant, runs in self.groups.items()}

    @cached_property
    def predictions(self) -> dict[str, dict[int, list[Prediction]]]:
        """variant → seed → what the run wrote for each example of the deciding test; runs that diverged, or wrote
        nothing, are left out."""
        test = units.metric_and_test(self.comparison.metric)[1]
        read = {
            variant: {run.seed: predictions_of(run.folder, test) for run in runs if not run.results.get("diverged")}
            for variant, runs in self.groups.items()
        }
        return {variant: {seed: rows for seed, rows in runs.items() if rows} for variant, runs in read.items()}

    def text_metrics(self) -> dict[str, Metric]:
        """name → metric, of those that texts suffice for and that are installed here: the deciding one, then the
        recipe's others."""
        stated = self.recipe.get("evaluate", {}).get("metrics") or []
        specs = {str(spec.get("name")) if isinstance(spec, Mapping) else str(spec): spec for spec in stated}
        metrics: dict[str, Metric] = {}
        for name in dict.fromkeys((self.comparison.learned, *specs)):
            plan = self.registry.resolve("metric", specs.get(name, name), "metric")
            metric = None if plan.problems else plan.build()
            if metric and metric.needs_search and not metric.needs_pieces:
                metrics[name] = metric
        return metrics

    @property
    def task(self) -> str:
        """The name of the task."""
        task = self.recipe.get("task")
        return str(task.get("name", "")) if isinstance(task, Mapping) else str(task or "")

    def sentence(self) -> str:
        """What was compared, in one sentence."""
        comparison, rows = self.comparison, self.comparison.rows
        recipes = list(dict.fromkeys(run.results["recipe"] for run in comparison.runs))
        number = len(rows)
        what = NUMBERS[number].capitalize() if number < len(NUMBERS) else str(number)
        one, several = (
            _("{What} variant of {recipes}, trained with"),
            _("{What} variants of {recipes}, each trained with"),
        )
        text = (one if number == 1 else several).format(What=_(what), recipes=_(" and ").join(recipes))
        on = _(" {seeds} for {steps} on {task}") if self.task else _(" {seeds} for {steps}")
        text += on.format(seeds=how_many_seeds(comparison), steps=self.steps(), task=self.task)
        text += _(", and scored by {metric}").format(metric=units.metric_name(comparison.metric))
        examples = self.about.get("examples", {}).get("test" if comparison.split == "test" else "valid")
        if test := units.metric_and_test(comparison.metric)[1]:
            examples = next((run.tests[test].get("examples") for run in comparison.runs if test in run.tests), None)
        where = _(" on {examples} {split} examples.") if examples else _(" on the {split} split.")
        return text + where.format(examples=f"{examples or 0:,}", split=_(comparison.split))

    def seeds(self) -> str:
        """`1, 2, 3`, or of which variants: `1, 2 and 3 of base; 1 and 2 of rms, batch`."""
        variants: dict[tuple[int, ...], list[str]] = {}
        for name in sorted(self.groups, key=lambda name: -len(self.groups[name])):
            variants.setdefault(tuple(sorted(run.seed for run in self.groups[name])), []).append(name)
        if len(variants) == 1:
            return ", ".join(map(str, *variants))
        return "; ".join(f"{listed(seeds)} of {', '.join(names)}" for seeds, names in variants.items())

    def training(self) -> tuple[str, bool]:
        """The budget of the baseline's training, and whether other variants have another one."""
        same = all(recipe.get("train") == self.recipe.get("train") for recipe in self.recipes.values())
        return recipe_words.training(self.recipe.get("train", {})), not same

    def steps(self) -> str:
        """`500 steps`, or `480 to 500 steps` where runs ended early."""
        steps = [run.results["steps"] for run in self.comparison.runs]
        low, high = min(steps), max(steps)
        return (
            counted(high, "step")
            if low == high
            else _("{low} to {high} steps").format(low=f"{low:,}", high=f"{high:,}")
        )

    def samples(self) -> list[tuple[str, str]]:
        """Examples of the task: training examples, or test examples where none were recorded."""
        if stored := self.about.get("samples"):
            return [(source, target) for source, target in stored]
        for run in self.comparison.runs:
            if rows := predictions_of(run.folder)[:NUM_SAMPLES]:
                return [(row.source, row.reference) for row in rows]
        return []

    def trainings(self) -> list[dict[str, Any]]:
        """When and where each run was trained, a run that was resumed several times."""
        return [training for about in self.abouts for training in about.get("trainings", [])]

    def commands(self) -> list[str]:
        """What trains all of this again; of runs that no command is known of, their recipes."""
        of_sweep = cache(read_command)  # it lists all runs, each of which would read it
        commands = [_command(run, of_sweep(run.folder.parent.parent).command) for run in self.comparison.runs]
        return list(dict.fromkeys(commands))

    def top(self) -> Path:
        """The folder that all runs are in, as short as the user would type it."""
        top = Path(self.comparison.folder).resolve()
        folders = [run.folder.resolve() for run in self.comparison.runs]
        if not all(folder.is_relative_to(top) for folder in folders):
            top = Path(os.path.commonpath(folders))
        return units.as_typed(top)


def _sides(facts: Facts) -> list[Side]:
    if len(facts.numbers) == 1:  # whose defaults differ from no other's: to know them would take Paddle's import
        return [side_of(facts.baseline, facts.groups[facts.baseline], facts.recipe)]
    recipes = {name: with_defaults(facts.recipes[name], facts.registry) for name in facts.numbers}
    return [side_of(name, facts.groups[name], recipe) for name, recipe in recipes.items()]


def _command(run: Result, command: Sequence[str]) -> str:
    """What trains the sweep that a run belongs to: the command that is recorded there, if there is one."""
    if command:
        return shlex.join(command)
    return f"paddle-tfm run {in_shell(run.folder / 'recipe.yaml')} --out runs/again"
