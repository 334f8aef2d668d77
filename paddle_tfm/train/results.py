"""The contents of `results.json` of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from paddle_tfm.model.size import matrix_parameters
from paddle_tfm.protocols import Metric
from paddle_tfm.train.evaluate import signatures
from paddle_tfm.train.final_tests import FinalTests
from paddle_tfm.train.progress import Progress
from paddle_tfm.train.run import Run


def results_of(
    run: Run,
    progress: Progress,
    metrics: Mapping[str, Metric],
    final: FinalTests,
    averaged: dict[str, Any] | None,
    diverged: str | None,
    wall_seconds: float,
) -> dict[str, Any]:
    """The run, its size, its times and its scores, as data for JSON.

    Args:
        final: the scores on the test split, how long its search took (`decoding`: sentences, tokens, seconds), and the
            scores of further tests; empty if the model was never evaluated.
        averaged: the mean of the last weights: its steps, whether it became the best checkpoint (`is_best`), and its
            scores on the validation split. None: `train.average` is not set.
        diverged: a sentence if the loss or its gradient became NaN or infinite.
        wall_seconds: time of the whole run, with evaluations and checkpoints.
    """
    size = run.recipe.get("size")
    return {
        "recipe": run.plan.run.recipe,
        "variant": run.plan.run.variant,
        **({} if size is None else {"size": size}),
        "seed": run.seed,
        "data": run.fingerprint["test" if run.encoded["test"] else "valid"],
        "steps": run.step,
        "parameters": run.parameters(),
        "matrix_parameters": matrix_parameters(run.model),
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "wall_seconds": round(wall_seconds, 3),
        "tokens_per_second": round(progress.tokens_per_second, 1),
        **({"decoding": _rounded(asdict(final.decoding))} if final.decoding.tokens else {}),
        "best_step": progress.best_step,
        "averaged": averaged,
        "dropped": run.dropped,
        "diverged": diverged,
        **({"skipped": progress.skipped} if progress.skipped else {}),
        "directions": {name: metric.higher_is_better for name, metric in metrics.items()},
        "units": {name: metric.unit for name, metric in metrics.items()},
        "signatures": signatures(metrics),
        "per_piece": ["loss", *(name for name, metric in metrics.items() if metric.per_piece)],
        "pieces": run.codec.cut(run.encoded["test"] or run.encoded["valid"]),
        "valid": progress.valid,
        "test": dict(final.test),
        "tests": dict(final.tests),
        "caveats": {"valid": progress.caveats, **final.caveats},
    }


def _rounded(times: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in times.items()}
