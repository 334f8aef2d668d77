"""What `watch` says of runs, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddle_tfm.cli.early_verdict import early_verdict, final_verdict

if TYPE_CHECKING:
    from paddle_tfm.sweep.overview import Overview
    from paddle_tfm.sweep.standing import Standing


def as_data(overview: Overview) -> dict[str, Any]:
    """All runs, and what is said of the sweeps that they belong to."""
    return {
        "folder": str(overview.folder),
        "finished": overview.is_finished,
        "counts": dict(overview.counts()),
        "seconds_left": overview.seconds_left(),
        "sweeps": [
            {
                "folder": str(sweep.folder),
                "finished": sweep.is_finished,
                "seeds": sweep.seeds(),
                "complete_seeds": sweep.complete_seeds(),
                "verdict": final_verdict(sweep) if sweep.is_finished else early_verdict(sweep),
                "continue_with": "" if sweep.is_finished else sweep.again(),
            }
            for sweep in overview.sweeps
        ],
        "runs": [_record(run) for run in overview.runs],
    }


def _record(run: Standing) -> dict[str, object]:
    """A run for programs."""
    return {
        "run": run.name,
        "folder": str(run.folder),
        "state": run.state,
        "step": run.step,
        "steps": run.steps,
        "loss": run.loss,
        "tokens_per_second": run.tokens_per_second,
        "seconds_left": run.seconds_left,
        "metric": run.best,
        "valid": run.valid.get(run.best),
        "score": run.scores.get(run.best),
        "note": run.note,
    }
