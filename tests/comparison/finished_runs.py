"""Folders of finished runs, as a training leaves them."""

from __future__ import annotations

import json
from pathlib import Path


def finished(folder: Path, variant: str, seed: int, scores: dict[str, float], **more) -> Path:
    """A finished run in `folder` with these scores; `more` replaces what else its results hold. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {
        "recipe": "r", "variant": variant, "seed": seed, "steps": 4, "parameters": 1000, "tokens": 400, "seconds": 60.0,
        "tokens_per_second": 9.0, "best_step": 4, "dropped": {}, "diverged": None, "directions": {"exact_match": True},
        "units": {"exact_match": "%"}, "signatures": {}, "valid": {}, "test": scores,
    }  # fmt: skip
    (folder / "results.json").write_text(json.dumps(results | more), "utf-8")
    return folder


def predicted(folder: Path, rows) -> None:
    """The run's predictions: right, source, reference, hypothesis, score."""
    lines = ["right\tsource\treference\thypothesis\tscore", *map("\t".join, rows)]
    (folder / "predictions.tsv").write_text("\n".join(lines) + "\n", "utf-8")
