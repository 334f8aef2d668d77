"""Predictions of a comparison's runs, right and wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from paddle_tfm.comparison.runs.finished import Result, grouped
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.predictions import is_right, of_same_texts, predictions_file, read_undamaged_predictions
from paddle_tfm.protocols import Prediction

MAX_PREDICTIONS = 2000  # of a run, among which examples are chosen


def samples(comparison: Comparison, right: int = 3, wrong: int = 3) -> tuple[list[dict], list[dict]]:
    """Right and wrong predictions of the best variant's first seed; wrong ones of the next variants if it has none.

    Each has `variant`, `seed`, `right`, `source`, `reference`, `hypothesis` and `score`.
    """
    groups = grouped(comparison.runs)
    good: list[dict] | None = None
    for row in comparison.rows:
        for run in sorted(groups[row.variant], key=lambda run: run.seed):
            rows = [] if run.results.get("diverged") else _predictions(run, row.variant)
            if rows:
                break
        else:
            continue
        if good is None:
            good = [item for item in rows if item["right"]][:right]
        if bad := [item for item in rows if not item["right"]][:wrong]:
            return good, bad
    return good or [], []


def _predictions(run: Result, variant: str) -> list[dict]:
    """The predictions of a run; one that is damaged is left out."""
    return [
        {
            "variant": variant,
            "seed": run.seed,
            "right": is_right(prediction),
            "source": prediction.source,
            "reference": prediction.reference,
            "hypothesis": prediction.hypothesis,
            "score": prediction.score,
        }
        for prediction in read_undamaged_predictions(predictions_file(run.folder))
    ]


class SideBySide(NamedTuple):
    """A source, its reference, what each variant wrote, and why it was chosen."""

    why: str
    source: str
    reference: str
    outputs: dict[str, str]
    seed: int
    likeness: list[float]  # of each output to the reference


def side_by_side(comparison: Comparison, differing: int = 8) -> list[SideBySide]:
    """Outputs of the same seed of all variants that have any, for sources that say most: those on which they differ
    most, the hardest, and the one in the middle. Of a single variant: the hardest, the middle and the best."""
    groups = grouped(comparison.runs)
    chosen: dict[str, Sequence[Prediction]] = {}
    for seed in sorted({run.seed for run in comparison.runs}):
        of_seed: dict[str, Sequence[Prediction]] = {}
        for row in comparison.rows:
            for run in groups[row.variant]:
                if run.seed == seed and not run.results.get("diverged"):
                    of_seed[row.variant] = read_undamaged_predictions(predictions_file(run.folder), MAX_PREDICTIONS)
        of_seed = of_same_texts(of_seed)
        if len(of_seed) > len(chosen):
            chosen, chosen_seed = of_seed, seed
    if not chosen:
        return []
    unique: dict[tuple[str, str], Sequence[Prediction]] = {}  # the split may have a source several times
    for outputs in zip(*chosen.values()):
        unique.setdefault((outputs[0].source, outputs[0].reference), outputs)
    rows = list(unique.values())
    likeness = [[similarity(item.reference, item.hypothesis) for item in row] for row in rows]
    return [
        SideBySide(
            why,
            rows[i][0].source,
            rows[i][0].reference,
            {v: o.hypothesis for v, o in zip(chosen, rows[i])},
            chosen_seed,
            likeness[i],
        )
        for why, i in _choose(likeness, differing)
    ]


def _choose(likeness: Sequence[Sequence[float]], differing: int) -> list[tuple[str, int]]:
    """Reasons and numbers of examples, each once."""
    numbers, means = range(len(likeness)), [sum(row) / len(row) for row in likeness]
    by_mean = sorted(numbers, key=lambda i: means[i])
    wide = sorted(numbers, key=lambda i: min(likeness[i]) - max(likeness[i]))
    wide = [i for i in wide if max(likeness[i]) > min(likeness[i])][:differing]
    single = len(likeness[0]) == 1
    reasons = [("the variants differ most here", i) for i in wide]
    hardest = by_mean[: 3 if single else 1]
    reasons += [
        ("among the least like their references" if single else "the least like its reference", i) for i in hardest
    ]
    reasons.append(("in the middle", by_mean[len(by_mean) // 2]))
    reasons += [("among the most like their references", i) for i in by_mean[-2:]] if single else []
    return list({i: (why, i) for why, i in reversed(reasons)}.values())[::-1]


def similarity(reference: str, hypothesis: str) -> float:
    """2 |A ∩ B| / (|A| + |B|) of the texts' characters and pairs of neighbouring characters, as multisets (Dice): 1
    where they are equal, 0 where they share none. It chooses examples and decides nothing."""
    if reference == hypothesis:
        return 1.0
    one, other = _bigrams(reference), _bigrams(hypothesis)
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _bigrams(text: str) -> Counter[str]:
    return Counter(text) + Counter(first + second for first, second in pairwise(text))
