"""Predictions of a comparison's runs, right and wrong."""

from __future__ import annotations

from paddle_tfm.comparison.table import Comparison, Result, grouped
from paddle_tfm.predictions import is_right, predictions_file, read_undamaged_predictions


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
