"""The comparison of finished runs as their folders hold them: what decides, against which baseline, and what is asked,
is what their sweeps recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paddle_tfm.comparison.claims.values import recorded_claims
from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.runs.finished import Result, collect, grouped, sweep_of
from paddle_tfm.comparison.runs.sizes import at_largest, written
from paddle_tfm.comparison.runs.trained_from import recipe_of
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.runs.sweep_files import read_command
from paddle_tfm.units import metric_and_test


def compare_recorded(
    folders: Sequence[Path],
    out: Path | None = None,
    metric: str | None = None,
    baseline: str | None = None,
    warn: Callable[[str], None] | None = None,
) -> Comparison:
    """The comparison of all finished runs in `folders`: decided by what the first recipe calls best, against the
    recorded baseline, where `metric` and `baseline` do not say otherwise.

    Args:
        out: where its report goes; None: the first folder. warn: takes sentences on what is damaged and left out, or
            not clear; None: a run whose results are damaged is an error.
    Raises:
        UserError: there is no finished run, or none can be compared so.
    """
    results = collect(folders, warn)
    report = warn or (lambda text: None)
    best = _deciding(results)
    sweep = sweep_of([result.folder for result in results]) or folders[0]
    question = Question.recorded(sweep, report)
    if metric and metric_and_test(metric)[0] != metric_and_test(best)[0]:
        question = replace(question, smallest_effect=None)  # it was said of another metric
    name = " + ".join(dict.fromkeys(result.results["recipe"] for result in results))
    baseline = baseline or _recorded_baseline(results, report)
    comparison = compare(results, name, out or folders[0], metric or best, baseline, question)
    comparison.claims = recorded_claims(comparison, sweep)
    return comparison


def _deciding(results: Sequence[Result]) -> str:
    """What the first recipe calls best that says so; the loss where there is none."""
    for result in results:
        best = recipe_of(result.folder).get("evaluate", {}).get("best")
        if isinstance(best, str):
            return metric_and_test(best)[0]  # whatever chose the checkpoint, the test decides
    return "loss"


def _recorded_baseline(results: Sequence[Result], report: Callable[[str], None]) -> str | None:
    """The baseline of finished runs, as rows name it: what the recipe of their sweep names, or else its first variant;
    None where that is not known, or not among them. Of several sweeps that of the first; where recipes name different
    ones, `report` gets a sentence."""
    largest, _ = at_largest(results)
    groups = grouped(largest)
    sweeps = list(dict.fromkeys(run.folder.parent.parent for run in results))
    named = {sweep: name for sweep in sweeps if (name := read_command(sweep).baseline)}
    rows = {sweep: row for sweep, name in named.items() if (row := _row(groups, sweep, name))}
    if len(others := list(dict.fromkeys(rows.values()))) > 1:
        said = ", ".join(f"“{row}” in {sweep}" for sweep, row in rows.items())
        report(f"the recipes name different baselines, {said}; “{others[0]}” is taken, and --baseline takes another")
    unnamed = (_row(groups, sweep, name) for sweep in sweeps for name in _first_variants(sweep, results))
    return next(filter(None, (*rows.values(), *unnamed)), None)


def _row(groups: Mapping[str, Sequence[Result]], sweep: Path, variant: str) -> str | None:
    """The row of a variant of a sweep, or of one of that name of another; None where there is neither."""
    rows = [(row, run) for row, runs in groups.items() for run in runs]
    own_first = sorted(rows, key=lambda each: each[1].folder.parent.parent != sweep)
    return next((row for row, run in own_first if variant in (run.variant, written(run))), None)


def _first_variants(sweep: Path, results: Sequence[Result]) -> list[str]:
    """The variants of a sweep that are here, as its recipe orders them."""
    variants = {run.variant: written(run) for run in results if run.folder.parent.parent == sweep}
    return [variants[name] for run in read_command(sweep).runs if (name := run.partition("/")[0]) in variants]
