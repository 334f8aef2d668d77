"""Thousands of finished runs, made from one that was trained."""

import json
import random
import shutil
from pathlib import Path

COPIED = ("about.json", "identity.json", "timings.jsonl", "predictions.tsv")


def copies(run: Path, folder: Path, variants: int, seeds: int) -> None:
    """`variants` × `seeds` finished runs below `folder`, as one sweep: each with the files of `run`, its own name and
    scores of its own."""
    draw = random.Random(1)
    results = json.loads((run / "results.json").read_text("utf-8"))
    recipe, log = (run / "recipe.yaml").read_text("utf-8"), (run / "metrics.jsonl").read_text("utf-8")
    names = []
    for variant in (f"v{i}" for i in range(variants)):
        for seed in range(1, seeds + 1):
            names.append(f"{variant}/seed-{seed}")
            copy = folder / names[-1]
            copy.mkdir(parents=True)
            for name in COPIED:
                shutil.copyfile(run / name, copy / name)
            (copy / "recipe.yaml").write_text(recipe.replace("seed: 1", f"seed: {seed}"), "utf-8")
            (copy / "metrics.jsonl").write_text(log, "utf-8")
            scores = {split: {name: draw.random() for name in results[split]} for split in ("valid", "test")}
            own = {**results, **scores, "variant": variant, "seed": seed}
            (copy / "results.json").write_text(json.dumps(own), "utf-8")
    about = json.loads((run.parents[1] / "command.json").read_text("utf-8"))
    (folder / "command.json").write_text(json.dumps({**about, "runs": names}), "utf-8")
