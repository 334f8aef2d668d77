"""Learning curves of runs, on steps, tokens and seconds: the mean over seeds and the range of the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypeGuard

from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.runs.logs import read_rows

AXES = {"steps": "training steps", "tokens": "target tokens", "seconds": "seconds of training steps"}
GRADIENT_NORM = "gradient_norm"
LARGEST = 1e100  # that is shown: with larger numbers an axis leaves what floats hold
MAX_BINS = 100  # of a run's training loss, which has a value at every step


class Point(NamedTuple):
    """The mean over runs, and the range of the runs."""

    x: float
    y: float
    low: float
    high: float


class RunCurves(NamedTuple):
    """Of a run: axis → step → how much of it had passed; and metric → step → value. `loss` and `gradient_norm`
    are those of each step of training. Some steps log more: `gradients`, step → layer → norm of its gradient, and
    `discrepancies`, step → norm → how far its running statistics are from those of a batch."""

    passed: dict[str, dict[int, float]]
    values: dict[str, dict[int, float]]
    loss: dict[int, float]
    gradient_norm: dict[int, float]
    gradients: dict[int, dict[str, float]]
    discrepancies: dict[int, dict[str, dict[str, float]]]


def read_curves(folder: Path) -> RunCurves:
    """From the logs of a run; an axis whose log is missing is left out."""
    rows = read_rows(folder / "metrics.jsonl")
    steps = [row for row in rows if "loss" in row]
    values: dict[str, dict[int, float]] = {}
    for row in rows:
        for name, value in (row.get("evaluation") or {}).items():
            if _is_shown(value):
                values.setdefault(name, {})[row["step"]] = value
    seen = {row["step"] for row in steps} | {step for series in values.values() for step in series} | {0}
    passed = {"steps": {step: float(step) for step in sorted(seen)}}
    for axis, logged in (("tokens", steps), ("seconds", read_rows(folder / "timings.jsonl"))):
        counts = [(row["step"], row[axis]) for row in logged if isinstance(row.get(axis), (int, float))]
        if counts and len(counts) == len(logged):
            totals = accumulate(float(count) for _, count in counts)
            passed[axis] = {0: 0.0, **{step: total for (step, _), total in zip(counts, totals)}}
    return RunCurves(
        passed,
        values,
        _binned(_finite(steps, "loss")),
        _binned(_finite(steps, GRADIENT_NORM)),
        {row["step"]: by_layer(row["gradient_norms"]) for row in steps if row.get("gradient_norms")},
        {row["step"]: row["norms"] for row in rows if row.get("norms")},
    )


def by_layer(norms: Mapping[str, float]) -> dict[str, float]:
    """Path of a parameter → norm, as layer → joint norm of its parameters, in the order of the model:
    `encoder.layers.0`, and what stands around the layers (`source_embedding`, `decoder.final_norm`, `head`)."""
    squares: dict[str, float] = {}
    for path, norm in norms.items():
        layer = path.split(".")[: 3 if ".layers." in path else 2 if path.startswith(("encoder.", "decoder.")) else 1]
        squares[".".join(layer)] = squares.get(".".join(layer), 0.0) + norm * norm
    return {layer: math.sqrt(square) for layer, square in squares.items()}


def _finite(rows: Sequence[dict], name: str) -> dict[int, float]:
    """step → the value of that name, where an axis can show it."""
    values = ((row["step"], row.get(name)) for row in rows)
    return {step: value for step, value in values if _is_shown(value)}


def _is_shown(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and abs(value) < LARGEST  # which NaN and infinity are not


def _binned(series: dict[int, float]) -> dict[int, float]:
    """The means of at most `MAX_BINS` stretches of equal length, each at its last step."""
    steps = sorted(series)
    width = max(1, math.ceil(len(steps) / MAX_BINS))
    stretches = [steps[start : start + width] for start in range(0, len(steps), width)]
    return {stretch[-1]: fmean(series[step] for step in stretch) for stretch in stretches}


def mean_points(runs: Sequence[Result], curves: Sequence[RunCurves], metric: str | None, axis: str) -> list[Point]:
    """The mean over runs at the steps that all have, and the range of the runs; `metric`: of the validation split,
    or one that is logged; None: the loss of training. A diverged run does not bend the mean of others."""
    whole = [curve for run, curve in zip(runs, curves) if not run.results.get("diverged")] or list(curves)
    series = [(_line(curve, metric), curve.passed.get(axis, {})) for curve in whole]
    series = [(values, passed) for values, passed in series if values and passed]
    if not series:
        return []
    common = set.intersection(*(values.keys() & passed.keys() for values, passed in series))
    points = []
    for step in sorted(common):
        values = [line[step] for line, _ in series]
        points.append(Point(fmean(passed[step] for _, passed in series), fmean(values), min(values), max(values)))
    return points


def _line(curve: RunCurves, metric: str | None) -> dict[int, float]:
    if metric is None:
        return curve.loss
    return curve.gradient_norm if metric == GRADIENT_NORM else curve.values.get(metric, {})
