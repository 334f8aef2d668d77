"""Which variants can be compared at all: those scored on the same texts, and by the same metric, whose runs differ in
nothing but what is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paddle_tfm import units
from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.comparison.runs.trained_from import recipe_of, unlike, unlike_in_sweep
from paddle_tfm.recipe.differences import differences
from paddle_tfm.recipe.yaml_lines import recipe_text

NAMED = 2  # settings, or variants, in one sentence


class Obstacle(NamedTuple):
    """Why a variant cannot be compared: in two words, for a cell of a table, and in a sentence."""

    words: str
    sentence: str


def obstacles(groups: Mapping[str, Sequence[Result]], baseline: str, metric: str) -> dict[str, Obstacle]:
    """variant → why its `metric` cannot be compared with that of the baseline; those that can be are left out. Where
    there is the baseline alone, why its runs are no sample of it."""
    base, apart = groups[baseline], {}
    of_base = _in_more_than_seeds(baseline, base)
    if len(groups) == 1:
        same = baseline, base, baseline, base
        alone = _texts(*same, metric) or _metric(*same, metric) or of_base
        return {baseline: alone} if alone else {}
    for variant, runs in groups.items():
        if variant == baseline:
            continue
        both = variant, runs, baseline, base
        obstacle = _texts(*both, metric) or _metric(*both, metric) or _pieces(*both, metric)
        obstacle = obstacle or of_base or _in_more_than_seeds(variant, runs) or _in_more_than_set(*both)
        if obstacle is not None:
            apart[variant] = obstacle
    return apart


def _texts(variant: str, runs: Sequence[Result], baseline: str, base: Sequence[Result], metric: str) -> Obstacle | None:
    """Whether all runs were scored on the same texts."""
    _, test = units.metric_and_test(metric)
    theirs, ours = (hashes_of_texts(group, metric) for group in (base, runs))
    for name, hashes in ((baseline, theirs), (variant, ours)):
        if test and "" in hashes:
            return Obstacle("no such test", f"“{name}” has no test “{test}”")
        if len(hashes) > 1:
            return Obstacle("other texts", f"the runs of “{name}” are scored on {len(hashes)} different test texts")
    if ours == theirs or not ours or not theirs:
        return None
    reason = _task_changes(*(_text_settings(recipe_of(group[0].folder), test) for group in (base, runs)))
    return Obstacle("other texts", f"“{variant}” is scored on other texts than “{baseline}”: {reason}")


def hashes_of_texts(runs: Sequence[Result], metric: str) -> set[str]:
    """What the runs were scored on; one that diverged before it could be scored says nothing of it."""
    return {texts for run in runs if (texts := run.texts(metric)) or not run.results.get("diverged")}


def _text_settings(recipe: Mapping[str, Any], test: str) -> dict[str, Any]:
    """What of a recipe says which texts a test is of, and in what batches."""
    tests = (recipe.get("evaluate") or {}).get("tests") or {}
    return {"task": recipe.get("task"), **({f"evaluate.tests.{test}": tests.get(test)} if test else {})}


def _task_changes(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """In what the tasks of two recipes differ."""
    changed = differences(there, here)
    if not changed:
        return "the task is the same, but not its texts (their hashes differ)"
    texts = [f"{item.path} is {recipe_text(item.other)}, and there {recipe_text(item.one)}" for item in changed]
    more = f", and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return f"{'; '.join(texts[:NAMED])}{more}"


def _metric(
    variant: str, runs: Sequence[Result], baseline: str, base: Sequence[Result], metric: str
) -> Obstacle | None:
    """Whether all runs were scored by the same metric."""
    name = units.metric_name(metric)
    ours, theirs = ({_definition(run, metric) for run in group} for group in (runs, base))
    if ours == theirs and len(ours) == 1:
        return None
    lacking = next((each for each, group in ((variant, ours), (baseline, theirs)) if None in group), None)
    if lacking is not None:
        return Obstacle("no such metric", f"“{lacking}” was not scored by {name}")
    texts = sorted({each[0] for each in (*ours, *theirs) if each is not None} - {""})
    how = f": {' and '.join(texts)}" if texts else ""
    sentence = f"the {name} of “{variant}” is another than that of “{baseline}”{how}"
    if variant == baseline:
        sentence = f"the runs of “{variant}” are scored by different metrics of the name {name}{how}"
    return Obstacle("other metric", sentence)


def _pieces(
    variant: str, runs: Sequence[Result], baseline: str, base: Sequence[Result], metric: str
) -> Obstacle | None:
    """Whether a metric that is per piece is one of the same pieces."""
    if not other_pieces([*runs, *base], metric):
        return None
    ours, theirs = ((group[0].results.get("pieces") or {}).get("number", 0) for group in (runs, base))
    numbers = f"the references are {ours:,} to “{variant}” and {theirs:,} to “{baseline}”"
    if ours == theirs:
        numbers = f"“{variant}” and “{baseline}” cut the references into different pieces"
    name = units.metric_name(metric)
    sentence = f"{name} is a number per piece, and {numbers}; a metric of texts or of characters compares them"
    return Obstacle("other pieces", sentence)


def other_pieces(runs: Sequence[Result], metric: str) -> bool:
    """Whether a metric is per piece, and the runs cut the references into other ones, as far as they say it."""
    name, _ = units.metric_and_test(metric)
    hashes = {(run.results.get("pieces") or {}).get("sha256") for run in runs}
    return len(hashes - {None}) > 1 and any(name in run.results.get("per_piece", ()) for run in runs)


def _definition(run: Result, metric: str) -> tuple[str, bool | None, str] | None:
    """What a metric is, as its run recorded it: signature, direction, unit; None if it was not measured."""
    results, name, (metric, _) = run.results, metric, units.metric_and_test(metric)
    if metric != "loss" and metric not in results["directions"]:
        return None
    signature = results["signatures"].get(name, results["signatures"].get(metric, ""))
    return signature, results["directions"].get(metric), results["units"].get(metric, "")


def _in_more_than_seeds(variant: str, runs: Sequence[Result]) -> Obstacle | None:
    """Whether the runs of a variant differ in their seeds alone."""
    if sentence := unlike([run.origin for run in runs]):
        return Obstacle("unlike runs", f"the runs of “{variant}” differ in more than their seeds: {sentence}")
    return None


def _in_more_than_set(variant: str, runs: Sequence[Result], baseline: str, base: Sequence[Result]) -> Obstacle | None:
    """Whether two variants of one sweep were trained as one command trains them."""
    if sentence := unlike_in_sweep(base[0].origin, runs[0].origin):
        return Obstacle("unlike runs", f"“{baseline}” and “{variant}” also differ in what is not compared: {sentence}")
    return None


def reasons(apart: Mapping[str, Obstacle]) -> str:
    """Why variants cannot be compared, the first of them."""
    sentences = [each.sentence for each in apart.values()]
    more = f"; and {len(sentences) - NAMED} more" if len(sentences) > NAMED else ""
    return "; ".join(sentences[:NAMED]) + more
