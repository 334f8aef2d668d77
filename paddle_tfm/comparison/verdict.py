"""What a comparison says in sentences: which variant is best, and whether the seeds suffice to say so."""

from __future__ import annotations

import math

from paddle_tfm import units
from paddle_tfm.comparison.runs.comparable import NAMED, reasons
from paddle_tfm.comparison.runs.finished import grouped
from paddle_tfm.comparison.statistics import CONFIDENCE, MoreSeeds, Verdict, two_groups
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.units import listed, plural


def question(comparison: Comparison) -> str:
    """What was asked; "" of one variant, of which nothing is."""
    others = [row.variant for row in comparison.rows if row.variant != comparison.baseline]
    if not others:
        return ""
    who = f"Is “{others[0]}”" if len(others) == 1 else f"Is any of {len(others)} variants"
    what = f"{comparison.split} {units.metric_name(comparison.metric)}"
    return f"{who} better than the baseline “{comparison.baseline}” in {what}?"


def verdict(comparison: Comparison) -> str:
    """One sentence: which variant is best, and whether the seeds suffice to say so."""
    best, metric = comparison.rows[0], comparison.metric
    others = [row for row in comparison.comparable if row.variant != comparison.baseline]
    value = f"{units.metric_name(metric)} {comparison.text(metric, best.mean[metric], best.spread[metric])}"
    if comparison.split == "validation":
        value += " on the validation split"
    if math.isnan(best.mean[metric]):
        lost = all(run.results.get("diverged") for run in comparison.runs)
        reason = "every run diverged" if lost else f"no run has a value of {units.metric_name(metric)}"
        return f"No variant is best: {reason}."
    apart = reasons(comparison.obstacles)
    if apart and not others:
        return f"Nothing can be compared: {apart}."
    if not others:
        text = f"“{best.variant}” is the only variant here: {value} over {plural(len(best.seeds), 'seed')}"
    elif best.variant == comparison.baseline:
        text = f"The baseline “{best.variant}” {_leads(comparison)} ({value}){_standing(comparison, others)}"
    else:
        text = f"“{best.variant}” {_leads(comparison)} ({value}) {_against(comparison, best.difference)}"
    if best.diverged:
        text += f"; {best.diverged} of its {len(best.seeds)} runs diverged and are not in that mean"
    diverged = _diverged([row for row in comparison.comparable if row is not best])
    more = f"{_beyond(comparison)}{_same_everywhere(comparison)}{_in_two_groups(comparison)}"
    return f"{text}.{diverged}{f' Not compared: {apart}.' if apart else ''}{more}"


def _beyond(comparison: Comparison) -> str:
    """In what variants differ beside what is compared: their difference may be owed to that."""
    texts = [
        f" “{variant}” differs from “{comparison.baseline}” in more than what is compared, which may be what its "
        f"difference is owed to: {sentence}."
        for variant, sentence in comparison.beyond.items()
    ]
    more = f" So do {plural(len(texts) - NAMED, 'other variant')}." if len(texts) > NAMED else ""
    return "".join(texts[:NAMED]) + more


def _same_everywhere(comparison: Comparison) -> str:
    """Where all runs have one value, as 0% where nothing has been learned yet: that it is the metric's doing."""
    rows, metric = comparison.comparable, comparison.metric
    same = [math.isclose(row.mean[metric], rows[0].mean[metric], rel_tol=1e-12) for row in rows]
    if len(rows) < 2 or not all(same) or any(row.spread[metric] or row.diverged for row in rows):
        return ""
    other = "" if metric == "loss" else " (--metric loss may)"
    return f" Every run has the same {units.metric_name(metric)}, which tells nothing apart{other}."


def _in_two_groups(comparison: Comparison) -> str:
    """Where some runs learned and others did not: that the t test does not hold there."""
    first = [row.difference.looks[0] for row in comparison.rows if row.difference and row.difference.looks]
    if not first:
        return ""
    metric, runs = comparison.metric, grouped(comparison.runs)
    groups = two_groups(
        {row.variant: [run.metric(metric) for run in runs[row.variant]] for row in comparison.comparable}
    )
    if groups is None:
        return ""
    ends = comparison.text(metric, groups.below), comparison.text(metric, groups.above)
    return (
        f" Runs are in two groups, {groups.low} up to {ends[0]} and {groups.high} from {ends[1]} on, with some of "
        f"{listed([f'“{name}”' for name in groups.divided])} in both: there a t test of {min(first)} seeds may find "
        "differences that are not there. Compare how many runs of each variant are in which group."
    )


def _leads(comparison: Comparison) -> str:
    """`has the best mean`, or with whom it shares it: equal means may be written to different digits."""
    metric = comparison.metric
    best, *rest = comparison.comparable
    equal = [f"“{row.variant}”" for row in rest if math.isclose(row.mean[metric], best.mean[metric], rel_tol=1e-12)]
    if equal:
        return f"shares the best mean with {listed(equal)}"
    sign = 1 if comparison.higher_is_better else -1
    if any(sign * row.mean[metric] > sign * best.mean[metric] for row in rest):
        return "leads, as a run that diverged counts as the worst"
    return "has the best mean"


def _standing(comparison: Comparison, others: list[Row]) -> str:
    """How the others stand to a baseline that leads."""
    differences = [row.difference for row in others if row.difference]
    words = {"worse": "worse", "equal": "equal", "equivalent": _no_larger(comparison), "better": "better"}
    count = {word: sum(item.verdict == verdict for item in differences) for verdict, word in words.items()}
    unclear, unpaired = len(differences) - sum(count.values()), len(others) - len(differences)
    pairs = max((item.pairs for item in differences if item.verdict == "undetermined"), default=0)
    seeds = plural(pairs, "seed") if pairs else "no seed in common"
    if len(others) == 1:
        if unclear or unpaired:
            more = _more(differences[0].more) if differences else ""
            return f", but {seeds} cannot tell these apart{more}" if pairs else f", but {seeds} tells these apart"
        return f"; the other is {words[differences[0].verdict]}, paired over {_seeds(differences[0])}"
    parts = [f"{number} {'is' if number == 1 else 'are'} {word}" for word, number in count.items() if number]
    parts += [f"{unclear} {'is' if unclear == 1 else 'are'} undetermined with {seeds}"] if unclear else []
    parts += [f"{unpaired} {'shares' if unpaired == 1 else 'share'} no seed with it"] if unpaired else []
    return f"; of {len(others)} others, {', '.join(parts)}"


def _no_larger(comparison: Comparison) -> str:
    return f"within {smallest(comparison)} of it" if comparison.question.smallest_effect else ""


def _more(more: MoreSeeds | None) -> str:
    """How many more seeds would likely settle it."""
    if more is None:
        return ""
    return f" (likely {'more than ' if more.more_than else ''}{plural(more.number, 'more seed')})"


def _diverged(others: list[Row]) -> str:
    """Which variants diverged: their means are those of the runs that did not."""
    lost = [f"“{row.variant}” in {row.diverged} of {plural(len(row.seeds), 'run')}" for row in others if row.diverged]
    return f" Diverged: {', '.join(lost)}." if lost else ""


def _against(comparison: Comparison, difference: Verdict | None) -> str:
    """How the leader stands to the baseline."""
    base = f"the baseline “{comparison.baseline}”"
    if any(row.variant == comparison.baseline and row.diverged == len(row.seeds) for row in comparison.rows):
        if difference is None or not difference.is_settled:
            return f"but every run of {base} diverged: nothing can be measured against it (--baseline names another)"
        return f"and is {difference.verdict} than {base}, every run of which diverged: {_seeds(difference)}"
    if difference is None:
        return f"but shares no finished seed with {base}: nothing tells these apart"
    seeds = _seeds(difference)
    if difference.verdict == "undetermined":
        numbers = f"{change(comparison, difference)} against {base}"
        return f"but {seeds} cannot tell these apart: {numbers}{_more(difference.more)}"
    if difference.verdict == "equal":
        return f"and equals {base} on each of {seeds}"
    if difference.verdict == "equivalent":
        return (
            f"and differs from {base} by no more than {smallest(comparison)}: {change(comparison, difference)}, {seeds}"
        )
    return f"and is {difference.verdict} than {base}: {change(comparison, difference)}, {seeds}"


def _seeds(difference: Verdict) -> str:
    """How many seeds a difference is of: `4 seeds`, or `3 of 4 seeds, the last look`."""
    if difference.looked_at == difference.pairs:
        return plural(difference.pairs, "seed")
    return f"{difference.looked_at} of {plural(difference.pairs, 'seed')}, the last look"


def change(comparison: Comparison, difference: Verdict) -> str:
    """A difference with its interval: `+1.2 points (95%: −0.3 to +2.7)`."""
    mean = mean_difference(comparison, difference)
    if difference.low is None and difference.high is None:
        signs = " by a test of signs" if difference.diverged or difference.baseline_diverged else ""
        return f"{mean}, no interval from {_seeds(difference)}{signs}"
    return f"{mean} ({CONFIDENCE:.0%}: {interval(comparison, difference)})"


def mean_difference(comparison: Comparison, difference: Verdict) -> str:
    """A difference without its interval: `+1.2 points`; a dash where runs of too many pairs diverged."""
    if difference.mean is None:
        return "–"
    unit = comparison.unit(comparison.metric)
    return units.difference(difference.mean, unit, _resolution(difference, unit))


def interval(comparison: Comparison, difference: Verdict) -> str:
    """The interval of a difference: `−0.3 to +2.7`, `above −0.3` where it has one end; a dash where there is none."""
    unit = comparison.unit(comparison.metric)
    resolution = _resolution(difference, unit)
    low, high = (
        None if end is None else units.signed(end, unit, resolution) for end in (difference.low, difference.high)
    )
    if low is None or high is None:
        return f"above {low}" if low else f"below {high}" if high else "–"
    return f"{low} to {high}"


def _resolution(difference: Verdict, unit: str) -> float | None:
    """What the digits of a difference follow: half of its interval; but an interval that excludes 0 must be seen to."""
    half = difference.half_width
    if half is None or difference.low is None or difference.high is None or difference.low <= 0 <= difference.high:
        return half
    nearest = min(abs(difference.low), abs(difference.high))
    hidden = not float(units.signed(nearest, unit, half).replace("−", "-"))
    return nearest if hidden else half


def verdict_text(comparison: Comparison, difference: Verdict) -> str:
    """The verdict as a table has it: `better`, `within ±0.5 points`."""
    return f"within ±{smallest(comparison)}" if difference.verdict == "equivalent" else difference.verdict


def smallest(comparison: Comparison) -> str:
    """The smallest effect of interest with its unit: `0.5 points`."""
    effect = comparison.question.smallest_effect
    unit = f" point{'' if effect == 1 else 's'}" if comparison.unit(comparison.metric) == "%" else ""
    return f"{effect:g}{unit}"
