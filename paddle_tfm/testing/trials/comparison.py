"""Small comparisons that sections are tried on: folders as a training leaves them, of runs that nobody trained."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.runs.sizes import written
from paddle_tfm.comparison.table import compare
from paddle_tfm.recipe.sections.ladder import at
from paddle_tfm.recipe.sections.seeds import SeedPlan
from paddle_tfm.recipe.sections.tuning import RECORD
from paddle_tfm.registry import Registry

# What a user may call a variant, and write in a text: LaTeX, HTML and formulas of matplotlib mean something else by it.
HOSTILE = '<u>a_b & 50% #1</u> $x_1^{ "~\\ 旋转'
TAG = "u"  # an element that no section has
LOST = "the loss was no number at step 8 (nan)"
STEPS, EVERY = 20, 5
SIZES = {"s": 100, "m": 300, "l": 900}  # of a ladder: name → matrix parameters
RECIPE = """
name: trial
summary: <b>&
task: {name: copy, max_length: 4}
model: {d_model: 16}
train: {steps: 20, max_tokens: 100}
"""
METRIC = "exact_match"


@dataclass(frozen=True)
class Trial:
    """A comparison, and what it is of."""

    what: str
    facts: Facts


@contextmanager
def trials(registry: Registry) -> Iterator[list[Trial]]:
    """Comparisons of many kinds; their folders are there within the block."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, values in ((HOSTILE, (0.5, 0.6, 0.7)), ("base", (0.5, 0.5, 0.5)), ("lost", (0.1, math.nan, 0.9))):
            _variant(root / "many", name, values)
        for size in SIZES:
            _variant(root / "ladder", "base", (0.5, 0.4, 0.6), size=size)
            _variant(root / "ladder", HOSTILE, (0.5, 0.6, 0.7), size=size)
        _variant(root / "one", HOSTILE, (0.5,))
        _variant(root / "dead", "base", (math.nan, math.nan))
        _variant(root / "bare", "base", (0.5, 0.6), bare=True)
        _variant(root / "bare", HOSTILE, (0.5, 0.6), bare=True)
        kinds = {
            "many": "three variants of three seeds that were tuned, one run diverged",
            "ladder": "two variants at three sizes",
            "one": "one run",
            "dead": "runs that all diverged",
            "bare": "runs whose folders hold results and nothing else",
        }
        (root / "many" / RECORD).write_text(json.dumps(_tuning()), "utf-8")
        plans = {"many": SeedPlan(at_most=3, looks=[3])}
        yield [Trial(what, _facts(root / name, registry, plans.get(name))) for name, what in kinds.items()]


def _tuning() -> dict[str, Any]:
    """What tuning leaves: two trials of two variants, of which one diverged."""
    values, axis = {"train.schedule.peak": 0.5}, {"train.schedule.peak": {"log": [0.5, 1]}}
    trials = [
        {"number": 1, "round": 0, "values": values, "score": 0.5, "steps": STEPS, "stopped": False},
        {"number": 2, "round": 0, "values": values, "score": None, "steps": STEPS, "stopped": False},
    ]
    chosen = {"chosen": 1, "values": values, "at_edge": {"train.schedule.peak": "below"}, "trials": trials}
    return {"metric": METRIC, "higher_is_better": True, "spaces": [axis], "variants": {HOSTILE: chosen, "base": chosen}}


def _facts(folder: Path, registry: Registry, plan: SeedPlan | None) -> Facts:
    results = collect([folder])
    baseline = next(("base" for run in results if written(run) == "base"), None)
    return Facts(compare(results, HOSTILE, folder, METRIC, baseline, Question(plan)), registry)


def _variant(root: Path, name: str, values: Sequence[float], bare: bool = False, size: str | None = None) -> None:
    """Finished runs of a variant, a seed each; NaN: it diverged. bare: without all that a report can do without. size:
    of a ladder."""
    name = at(name, size)
    for seed, value in enumerate(values, 1):
        folder = root / str(sum(map(ord, name))) / f"seed-{seed}"
        folder.mkdir(parents=True)
        more: dict[str, Any] = {} if bare or math.isnan(value) else {"tests": _further(value)}
        more |= {} if size is None else {"size": size, "matrix_parameters": SIZES[size]}
        (folder / "results.json").write_text(json.dumps({**_results(name, seed, value), **more}), "utf-8")
        if not bare:
            _beside(folder, value)


def _results(name: str, seed: int, value: float) -> dict[str, Any]:
    diverged = math.isnan(value)
    seconds = 60.0 + seed + (0.0 if diverged else 100.0 * value)
    return {
        "recipe": HOSTILE,
        "variant": name,
        "seed": seed,
        "steps": STEPS,
        "parameters": 1000 + len(name),
        "tokens": 100 * STEPS,
        "seconds": seconds,  # the better, the slower: in no other order are the rows of the comparison
        "tokens_per_second": 100.0 * STEPS / seconds,
        "best_step": STEPS,
        "dropped": {},
        "diverged": LOST if diverged else None,
        "directions": {METRIC: True, "perplexity": False},
        "units": {METRIC: "%", "perplexity": ""},
        "signatures": {METRIC: "case:mixed|<b>"},
        "valid": {} if diverged else {METRIC: value, "perplexity": 2.0 - value},
        "test": {} if diverged else {METRIC: value, "perplexity": 2.0 - value},
    }


def _further(value: float) -> dict[str, Any]:
    """A further test of other texts, and one in other batches."""
    common = {"examples": 12, "max_rows": None, "padding": 0, "scores": {METRIC: value / 2, "perplexity": 3.0 - value}}
    return {
        "beyond": {**common, "texts": "test@beyond", "data": "b", "in_training": 3},
        "alone": {**common, "texts": "test", "data": "a", "max_rows": 1, "drift": 0.25, "changed_outputs": 2},
    }


def _beside(folder: Path, value: float) -> None:
    """Logs, predictions and recipe of a run."""
    steps = range(1, STEPS // 2 if math.isnan(value) else STEPS + 1)
    rows: list[dict[str, Any]] = []
    for step in steps:
        logged = {"gradient_norms": {"head.weight": 1.0 / step}} if step in (1, EVERY) else {}
        rows.append({"step": step, "loss": 4.0 / step, "tokens": 100, "gradient_norm": 1.0 / step, **logged})
        if step % EVERY == 0 and not math.isnan(value):
            numbers = {METRIC: value * step / STEPS, "perplexity": 2.0, "norm_discrepancy_mean": 1.0 / step}
            rows.append({"step": step, "evaluation": numbers, "norms": {"encoder.final_norm": {"mean": 1.0 / step}}})
    times = [{"step": step, "seconds": 0.5, "tokens_per_second": 200.0} for step in steps]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "timings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in times), "utf-8")
    (folder / "recipe.yaml").write_text(RECIPE, "utf-8")
    if math.isnan(value):
        return
    lines = ["right\tsource\treference\thypothesis\tscore"]
    for number in range(12):
        words = " ".join(HOSTILE.split()[:3] + ["a"] * number)
        right = number / 12 < value
        lines.append(f"{'yes' if right else 'no'}\t{words}\t{words}\t{words if right else 'b'}\t-1.5")
    (folder / "predictions.tsv").write_text("\n".join(lines) + "\n", "utf-8")
