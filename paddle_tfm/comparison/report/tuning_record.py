"""What tuning left: `tuning.json` of a sweep, and the runs with the recipe's own values beside the tuned ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddle_tfm.comparison.report.recipe_words import component
from paddle_tfm.comparison.runs.finished import collect, sweep_of
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.recipe.sections.space import Axis
from paddle_tfm.recipe.sections.tuning import FOLDER, RECORD, UNTUNED


@dataclass(frozen=True)
class Chosen:
    """What tuning chose for a variant.

    Args:
        score: of the trial that was chosen, on the validation split. at_edge: the settings whose chosen value is the
            outermost that was tried. trials: how many there were; diverged, stopped: how many of these diverged, and
            did not get all steps (halving).
    """

    values: Mapping[str, Any]
    score: float
    at_edge: Sequence[str]
    trials: int
    diverged: int
    stopped: int

    def text(self) -> str:
        """`train.schedule.peak 0.002, train.schedule.warmup 200`."""
        return ", ".join(f"{path} {component(value)}" for path, value in self.values.items())


@dataclass(frozen=True)
class Tuned:
    """What tuning left of a sweep. `spaces`: path → axis as it was written, before and after each widening."""

    metric: str
    spaces: Sequence[Mapping[str, Any]]
    variants: Mapping[str, Chosen]

    def space(self, paths: Iterable[str] | None = None, first: bool = False) -> str:
        """The space as it became, or as it was at `first`; of all paths or some: `model.dropout 0 to 0.3 (linear)`."""
        space = self.spaces[0 if first else -1]
        return "; ".join(f"{path} {Axis.parse(path, space[path])}" for path in (space if paths is None else paths))

    @property
    def is_halved(self) -> bool:
        """Whether some trials did not get all steps."""
        return any(chosen.stopped for chosen in self.variants.values())


def read_tuned(comparison: Comparison) -> Tuned | None:
    """What tuning left of the sweep whose runs these are; None without one, of several sweeps, or where its record is
    damaged."""
    folder = sweep_of([run.folder for run in comparison.runs])
    try:
        record = read_json(folder / RECORD, ("metric", "spaces", "variants")) if folder else None
        return _tuned(record) if record else None
    except (UserError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None


def _tuned(record: Mapping[str, Any]) -> Tuned:
    variants = {}
    for name, item in record["variants"].items():
        scores = [math.nan if each["score"] is None else float(each["score"]) for each in item["trials"]]
        variants[name] = Chosen(
            dict(item["values"]),
            scores[item["chosen"] - 1],
            list(item["at_edge"]),
            len(scores),
            sum(map(math.isnan, scores)),
            sum(each["stopped"] for each in item["trials"]),
        )
    tuned = Tuned(record["metric"], list(record["spaces"]), variants)
    tuned.space()  # a ValueError is damage too
    return tuned


def untuned(comparison: Comparison) -> Comparison | None:
    """The same comparison of the runs with the recipe's own values; None where there are none."""
    folder = sweep_of([run.folder for run in comparison.runs])
    files = sorted((folder / FOLDER).glob(f"*/{UNTUNED}*/results.json")) if folder else []
    if not files:
        return None
    order = [run.variant for run in comparison.runs]
    try:
        results = collect([file.parent for file in files])
        results = sorted((run for run in results if run.variant in order), key=lambda run: order.index(run.variant))
        return compare(
            results, comparison.name, comparison.folder, comparison.metric, comparison.baseline, comparison.question
        )
    except UserError:  # the baseline, or the metric, is not among them, or results are damaged
        return None
