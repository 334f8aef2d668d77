"""A table of variants: their means and spreads, and paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TypeVar

import numpy as np

from paddle_tfm import units
from paddle_tfm.caveats import overlap, said
from paddle_tfm.comparison.claims.judge import Claims
from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.runs.comparable import Obstacle, obstacles, other_pieces
from paddle_tfm.comparison.runs.finished import Pairs, Result, directions, further_tests, grouped, numbered, pairs
from paddle_tfm.comparison.runs.sizes import as_trained, at_largest
from paddle_tfm.comparison.runs.trained_from import beyond_one
from paddle_tfm.comparison.statistics import Verdict, decide, spread, worst_value
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.recipe.sections.further_tests import why_not_measured

OTHER_PIECES = "not comparable between these runs: it is a number per piece, and their pieces differ"


@dataclass
class Row:
    """A variant over its seeds. `mean` is that of the runs that have a value; `standing`, by which variants are ranked,
    counts each that diverged as the worst (`standings`)."""

    variant: str
    seeds: list[int]
    mean: dict[str, float]
    spread: dict[str, float | None]
    parameters: int
    tokens_per_second: float
    seconds: float
    diverged: int
    standing: float
    difference: Verdict | None = None


@dataclass
class Comparison:
    """Variants side by side. `metric` decides the order of `rows`, the best first. Of a ladder, the variants at the
    largest size; `smaller` are the runs of the other sizes."""

    name: str
    folder: Path
    metric: str
    higher_is_better: bool
    units: dict[str, str]
    baseline: str
    rows: list[Row]
    runs: list[Result]
    signatures: dict[str, str] = field(default_factory=dict)
    question: Question = field(default_factory=Question)
    claims: Claims | None = None  # of the recipe, judged
    obstacles: dict[str, Obstacle] = field(default_factory=dict)  # variant → why it cannot be compared
    smaller: list[Result] = field(default_factory=list)
    beyond: dict[str, str] = field(default_factory=dict)  # variant → in what it differs beyond what is compared
    numbers: dict[str, int] = field(default_factory=dict)  # variant → the number of its colour

    def data(self) -> dict:
        """What `comparison.json` holds."""
        return {
            "name": self.name,
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            "baseline": self.baseline,
            "question": self.question.data(),
            "signatures": self.signatures,
            "caveats": self.caveats(),
            **({} if self.claims is None else self.claims.data()),
            "not_compared": {variant: obstacle.sentence for variant, obstacle in self.obstacles.items()},
            "differ_beyond": self.beyond,
            "rows": [asdict(row) for row in self.rows],
            "runs": [{"folder": str(run.folder), **run.results} for run in [*self.runs, *self.smaller]],
        }

    def caveats(self, even_none: bool = False) -> list[str]:
        """What must stand beside its scores. `even_none`: also that no text was trained on."""
        stored = [run.results.get("caveats") or {} for run in self.runs]
        known = [{key: of["in_training"] for key, of in each.items() if "in_training" in of} for each in stored]
        trained_on = dict.fromkeys(sentence for each in known if (sentence := overlap(each, even_none)))
        counted = said({variant: [run.results for run in runs] for variant, runs in grouped(self.runs).items()})
        return [*trained_on, *counted]

    @property
    def comparable(self) -> list[Row]:
        """The rows that can be compared: the best first."""
        return [row for row in self.rows if row.variant not in self.obstacles]

    @property
    def split(self) -> str:
        """The split that the final values are of."""
        return "test" if any(run.results["test"] for run in self.runs) else "validation"

    def text(self, name: str, value: float | None, uncertainty: float | None = None) -> str:
        """A metric's value as people read it."""
        return units.text(value, self.unit(name), uncertainty)

    def unit(self, name: str) -> str:
        """The unit of a metric; a plain number (the loss) has none."""
        return self.units.get(units.metric_and_test(name)[0], "")

    def signature(self, name: str) -> str:
        """What must stand beside the values of a metric; mostly nothing."""
        return self.signatures.get(name, self.signatures.get(units.metric_and_test(name)[0], ""))

    @property
    def learned(self) -> str:
        """The deciding metric as learning curves have it, of the validation split."""
        return units.metric_and_test(self.metric)[0]

    def shown(self) -> list[str]:
        """The metrics of the table: the deciding one first."""
        return list(dict.fromkeys(name for row in self.rows for name in row.mean))  # a row begins with it


def compare(
    results: Sequence[Result],
    name: str,
    folder: Path,
    metric: str,
    baseline: str | None = None,
    question: Question | None = None,
) -> Comparison:
    """Runs grouped by variant, the best first, and behind them those that cannot be compared; differences to `baseline`
    (default: the first variant) by seed, and what they say to the `question`. Runs of a ladder: those of the largest
    size.

    Raises:
        UserError: the metric was not measured, or the baseline is no variant here.
    """
    results, smaller = at_largest(results)
    groups, question = grouped(results), question or Question()
    higher = _is_higher_better(results, metric)
    metric_units = {name: unit for run in results for name, unit in run.results["units"].items()}
    baseline = as_trained(baseline, results) or next(iter(groups))
    if baseline not in groups:
        raise UserError(unknown("variant", baseline, groups))
    unit = metric_units.get(units.metric_and_test(metric)[0], "")
    apart = obstacles(groups, baseline, metric)
    standing = standings(
        {variant: [run.outcome(metric) for run in runs] for variant, runs in groups.items()}, unit, higher
    )
    others = [variant for variant in groups if variant != baseline and variant not in apart]
    beyond = {variant: beyond_one(groups[baseline][0].origin, groups[variant][0].origin) for variant in others}
    paired = {variant: pairs(groups[variant], groups[baseline], metric) for variant in others}
    differences = verdicts(paired, unit, higher, question)
    rows = [_row(variant, group, metric, standing[variant]) for variant, group in groups.items()]
    for row in rows:
        row.difference = differences.get(row.variant)
    worst = -math.inf if higher else math.inf
    rows.sort(key=lambda row: row.variant != baseline)  # among equals the baseline leads
    rows.sort(key=lambda row: worst if math.isnan(row.standing) else row.standing, reverse=higher)
    rows.sort(key=lambda row: row.variant in apart)
    return Comparison(
        name, folder, metric, higher, metric_units, baseline, rows, results, _signatures(results), question,
        obstacles=apart, smaller=smaller, beyond={variant: text for variant, text in beyond.items() if text},
        numbers=numbered(groups),
    )  # fmt: skip


def _is_higher_better(results: Sequence[Result], metric: str) -> bool:
    """Whether it is for a metric, or the metric of a further test, as the runs say.

    Raises:
        UserError: it was not measured.
    """
    known = directions(results)
    if sentence := why_not_measured(metric, known, further_tests(results)):
        raise UserError(sentence)
    return known[units.metric_and_test(metric)[0]]


def _signatures(results: Sequence[Result]) -> dict[str, str]:
    """metric → what must stand beside its values; a sentence where runs were not scored in the same way."""
    signatures: dict[str, dict[str, None]] = {}  # of each metric, in the order of the runs
    for run in results:
        for name, signature in run.results["signatures"].items():
            signatures.setdefault(name, {})[signature] = None
    texts_by_metric = {
        name: next(iter(texts)) if len(texts) == 1 else f"not comparable between these runs: {' and '.join(texts)}"
        for name, texts in signatures.items()
    }
    names = dict.fromkeys(name for run in results for name in run.results.get("per_piece", ()))
    return texts_by_metric | {name: OTHER_PIECES for name in names if other_pieces(results, name)}


def _row(variant: str, group: Sequence[Result], metric: str, standing: float) -> Row:
    scored = (name for run in group for name in (run.results["test"] or run.results["valid"]))
    of_tests = (f"{units.metric_and_test(metric)[0]}{units.AT}{test}" for test in further_tests(group))
    names = list(dict.fromkeys([metric, *of_tests, *scored]))
    values = {name: [value for run in group if not math.isnan(value := run.metric(name))] for name in names}
    whole = [run for run in group if not run.results.get("diverged")] or group  # one that ended early took less time
    return Row(
        variant=variant,
        seeds=sorted(run.seed for run in group),
        mean={name: fmean(seeds) if seeds else math.nan for name, seeds in values.items()},
        spread={name: spread(seeds) for name, seeds in values.items()},
        parameters=group[0].results["parameters"],
        tokens_per_second=fmean(run.results["tokens_per_second"] for run in whole),
        seconds=fmean(run.results["seconds"] for run in whole),
        diverged=sum(bool(run.results.get("diverged")) for run in group),
        standing=standing,
    )


Key = TypeVar("Key", bound=Hashable)


def verdicts(pairs: Mapping[Key, Pairs], unit: str, higher: bool, question: Question) -> dict[Key, Verdict]:
    """A verdict on each variant, or each on each test, that has a pair: its value and the baseline's, NaN where a run
    diverged."""
    lowest, highest = units.bounds(unit, higher)
    smallest = None if question.smallest_effect is None else units.stored(question.smallest_effect, unit)
    some = {variant: values for variant, values in pairs.items() if values}
    rules = {variant: question.rule(values.looks) for variant, values in some.items()}
    return decide(some, rules, higher, smallest, highest - lowest)


def standings(values: Mapping[str, Sequence[float | None]], unit: str, higher: bool) -> dict[str, float]:
    """The mean by which each variant is ranked. A run that diverged, None, counts as the worst that the metric can be,
    or, where it has no worst, as the worst here; NaN where no run of a variant has a value."""
    known = [value for column in values.values() for value in column if value is not None]
    worst = worst_value(np.array(known), higher, units.bounds(unit, higher)[0 if higher else 1])
    return {variant: _standing(column, worst) for variant, column in values.items()}


def _standing(values: Sequence[float | None], worst: float) -> float:
    if not [value for value in values if value is not None and not math.isnan(value)]:
        return math.nan
    counted = [worst if value is None else value for value in values]
    return fmean(value for value in counted if not math.isnan(value))
