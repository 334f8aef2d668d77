"""One trial of tuning, and what it reached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paddle_tfm.recipe.space import Point
from paddle_tfm.train.forms import read_results

WORST = (-math.inf, -math.inf)


class Trial(NamedTuple):
    """A point that every variant tries. `round`: how often the space had been widened."""

    number: int
    round: int
    values: Point


class Score(NamedTuple):
    """What a trial of one variant reached on the validation split; None where it diverged. `rank`: higher is better.
    `stopped`: others of its variant were better after these `steps`, and continued."""

    value: float | None
    rank: tuple[float, float]
    steps: int
    stopped: bool


class Rung(NamedTuple):
    """What the trials of one variant reached by the end of a rung: the `best` of all scores so far, with however many
    steps, and the `steps` of all trials together until then."""

    steps: int
    best: Score

    @classmethod
    def after(cls, before: Sequence[Rung], scores: Sequence[Score]) -> Rung:
        """The rung that follows those `before`, whose trials reached `scores`."""
        last = before[-1:]
        steps = sum(rung.steps for rung in last) + sum(score.steps for score in scores)
        return cls(steps, max((*(rung.best for rung in last), *scores), key=lambda score: score.rank))


def read_score(folder: Path, metric: str, stopped: bool) -> Score:
    """What the trial in a folder reached.

    Raises:
        UserError: its results cannot be read.
    """
    results = read_results(folder, ("valid", "directions", "diverged", "steps"))
    value, loss = (results["valid"].get(name) for name in (metric, "loss"))
    if results["diverged"] or value is None or not math.isfinite(value):
        return Score(None, WORST, results["steps"], stopped)
    higher = metric != "loss" and results["directions"].get(metric, True)
    rank = (value if higher else -value, -loss if loss is not None and math.isfinite(loss) else -math.inf)
    return Score(value, rank, results["steps"], stopped)
