"""Finished runs: read from their folders, grouped by variant, paired by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.runs.trained_from import Origin, origin_of
from paddle_tfm.errors import UserError
from paddle_tfm.files import folders_with
from paddle_tfm.language import _
from paddle_tfm.recipe.sections.tuning import is_beside
from paddle_tfm.runs import manifest
from paddle_tfm.runs.forms import RESULTS, read_about, read_results, read_stored_identity
from paddle_tfm.runs.sweep_files import read_looks, variant_numbers

REQUIRED_KEYS = (
    *("recipe", "variant", "seed", "steps", "parameters", "seconds", "tokens_per_second"),
    *("directions", "units", "signatures", "valid", "test"),
)


@dataclass
class Result:
    """A finished run, as its folder describes it."""

    folder: Path
    variant: str
    seed: int
    results: dict
    source: Path = Path()  # the folder that the user named, which holds it
    look: float = math.inf  # of those at its sweep's listed seeds, the first that saw it; infinite for none so far

    @cached_property
    def origin(self) -> Origin:
        """What it was trained from."""
        return origin_of(self.folder)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines its numbers; empty where that cannot be read."""
        try:
            return read_stored_identity(self.folder)
        except UserError:
            return {}

    @cached_property
    def about(self) -> dict[str, Any]:
        """Its texts, and where and when it was trained; empty where that cannot be read."""
        return read_about(self.folder)

    @property
    def tests(self) -> dict[str, dict]:
        """name → what is known of each further test."""
        return self.results.get("tests") or {}

    def texts(self, metric: str) -> str:
        """The hash of the texts that a metric is of; behind it the batches of a further test, where these are other
        than usual. "" where it had no such test."""
        _, test = units.metric_and_test(metric)
        if not test:
            return self.results.get("data", "")
        facts = self.tests.get(test, {})
        batches = (f"{key} {facts[key]}" for key in ("max_rows", "padding", "max_length") if facts.get(key))
        return " ".join([str(facts.get("data", "")), *batches])

    def metric(self, name: str) -> float:
        """The value on the test split, or on the validation split where the task has no test split; that of a further
        test, `exact_match@beyond`. NaN if diverged."""
        if self.results.get("diverged"):
            return math.nan
        metric, test = units.metric_and_test(name)
        scored = self.results["test"] or self.results["valid"]
        scored = self.tests.get(test, {}).get("scores", {}) if test else scored
        return scored.get(metric, math.nan)

    def outcome(self, name: str) -> float | None:
        """The value of a metric, NaN where the run has none; None where it diverged, which is an outcome too."""
        return None if self.results.get("diverged") else self.metric(name)


def collect(folders: Iterable[Path], warn: Callable[[str], None] | None = None) -> list[Result]:
    """Finished runs in `folders`, each a run or a folder that holds some; trials of tuning only where they are named.

    Args:
        warn: takes a sentence for each run whose results are damaged, which is left out; None: such a run is an error.
    Raises:
        UserError: a folder holds none, what is known of looks at it is damaged, or a result cannot be read: without
            `warn` any, else one of a run that is named, or the last of a folder without a sound one.
    """
    results: dict[Path, Result] = {}
    for folder in folders:
        is_run = (folder / RESULTS).is_file()  # then nothing below it is looked at
        runs = [folder] if is_run else [run for run in folders_with(folder, RESULTS) if not is_beside(run)]
        if not runs:
            text = _("{folder}: no finished run is here; `paddle-tfm ls runs` shows where they are")
            raise UserError(text.format(folder=folder))
        left = len(runs)
        for run in runs:
            try:
                results[run.resolve()] = _read(run, folder)
            except UserError as error:
                left -= 1
                if warn is None or not left:
                    raise
                warn(_("{error}; this run is left out").format(error=error))
    looks = {sweep: read_looks(sweep) for sweep in {run.parent.parent for run in results}}
    for run, result in results.items():
        result.look = looks[run.parent.parent].get(f"{run.parent.name}/{run.name}", math.inf)
    return list(results.values())


def _read(run: Path, source: Path) -> Result:
    results = read_results(run, REQUIRED_KEYS)
    if sentence := manifest.damage_of_run(run):
        raise UserError(sentence)
    return Result(run, results["variant"], results["seed"], results, source)


def sweep_of(runs: Iterable[Path]) -> Path | None:
    """The folder of the sweep that all of these runs are of, whichever of its folders were named; None of several."""
    sweeps = {run.parent.parent for run in runs}
    return sweeps.pop() if len(sweeps) == 1 else None


def directions(results: Sequence[Result]) -> dict[str, bool]:
    """metric → whether higher is better, of all that were measured."""
    return {"loss": False} | {name: higher for run in results for name, higher in run.results["directions"].items()}


def further_tests(results: Sequence[Result]) -> list[str]:
    """The names of the further tests of these runs, in the order of their recipes."""
    return list(dict.fromkeys(name for run in results for name in run.tests))


def grouped(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Runs by variant, as rows name it: with the recipe before it where there are several recipes, and with the folder
    that the user named where only that distinguishes runs.

    Raises:
        UserError: two runs in one folder are of the same variant and seed, which are no two samples of it.
    """
    several = len({run.results["recipe"] for run in results}) > 1

    def name(run: Result) -> str:
        return f"{run.results['recipe']}/{run.variant}" if several else run.variant

    by_recipe = _groups(results, name)
    if _twins(by_recipe) is None:
        return by_recipe
    by_folder = _groups(results, lambda run: f"{run.source}/{name(run)}")
    if (twins := _twins(by_folder)) is not None:
        one, other = twins
        text = _("{folder} and {other} are both '{variant}' with seed {seed}; compare one of them")
        raise UserError(text.format(folder=one.folder, other=other.folder, variant=one.variant, seed=one.seed))
    return by_folder


def _groups(results: Sequence[Result], label: Callable[[Result], str]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(label(result), []).append(result)
    return groups


def _twins(groups: dict[str, list[Result]]) -> tuple[Result, Result] | None:
    """Two runs of one group with the same seed, if there are any."""
    for group in groups.values():
        by_seed: dict[int, Result] = {}
        for run in group:
            if run.seed in by_seed:
                return by_seed[run.seed], run
            by_seed[run.seed] = run
    return None


def numbered(groups: Mapping[str, Sequence[Result]]) -> dict[str, int]:
    """Variant, as rows name it → the number of its colour: that which it has in its sweep, whichever of its runs are
    compared and whatever the order of their folders; of several sweeps, its place among them."""
    sweep = sweep_of(run.folder for runs in groups.values() for run in runs)
    known = variant_numbers(sweep) if sweep else {}
    more = count(len(known))
    numbers = {name: known.get(runs[0].folder.parent.name) for name, runs in groups.items()}
    return {name: next(more) if number is None else number for name, number in numbers.items()}


class Pairs(list[tuple[float, float]]):
    """(variant, baseline) over common seeds, NaN where a run diverged, in the order in which they were looked at first,
    and then of their seeds. `looks`: after how many of them there was a look, the one at all of them included."""

    looks: Sequence[int] = ()


def pairs(group: Sequence[Result], base: Sequence[Result], metric: str) -> Pairs:
    """Those of two variants; where a run has not the metric, its pair is left out."""
    both, looks = of_common_seeds([group, base], metric)
    paired = Pairs((one.metric(metric), other.metric(metric)) for one, other in both)
    paired.looks = looks
    return paired


def of_common_seeds(groups: Sequence[Sequence[Result]], metric: str) -> tuple[list[tuple[Result, ...]], list[int]]:
    """The runs of each seed with which every variant has one that has the metric, or diverged: in the order in which
    they were looked at first, and then of their seeds. And after how many of these seeds there was a look, the one at
    all of them included."""
    by_seed = [{run.seed: run for run in group if not _is_without(run, metric)} for group in groups]
    whole = [tuple(each[seed] for each in by_seed) for seed in by_seed[0] if all(seed in each for each in by_seed)]
    known = sorted(whole, key=lambda runs: (max(run.look for run in runs), runs[0].seed))
    seen = [max(run.look for run in runs) for runs in known]
    return known, [size for size, (look, then) in enumerate(zip(seen, [*seen[1:], None]), 1) if look != then]


def _is_without(run: Result, metric: str) -> bool:
    value = run.outcome(metric)
    return value is not None and math.isnan(value)
