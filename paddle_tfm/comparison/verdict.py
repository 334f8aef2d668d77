"""What a comparison says in sentences: which variant is best, and whether the seeds suffice to say so."""

from __future__ import annotations

import math

from paddle_tfm import units
from paddle_tfm.comparison.runs.comparable import NAMED, reasons
from paddle_tfm.comparison.runs.finished import grouped
from paddle_tfm.comparison.statistics import CONFIDENCE, MoreSeeds, Verdict, two_groups
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.language import _, counted, enumerated

VERDICTS = {"better": "better", "worse": "worse", "equal": "equal", "undetermined": "undetermined"}  # in a table


def question(comparison: Comparison) -> str:
    """What was asked; "" of one variant, of which nothing is."""
    others = [row.variant for row in comparison.rows if row.variant != comparison.baseline]
    if not others:
        return ""
    one, several = (
        _("Is “{variant}” better than the baseline “{baseline}” in {split} {metric}?"),
        _("Is any of {number} variants better than the baseline “{baseline}” in {split} {metric}?"),
    )
    return (one if len(others) == 1 else several).format(
        variant=others[0],
        number=len(others),
        baseline=comparison.baseline,
        split=_(comparison.split),
        metric=units.metric_name(comparison.metric),
    )


def verdict(comparison: Comparison) -> str:
    """One sentence: which variant is best, and whether the seeds suffice to say so."""
    best, metric = comparison.rows[0], comparison.metric
    others = [row for row in comparison.comparable if row.variant != comparison.baseline]
    value = f"{units.metric_name(metric)} {comparison.text(metric, best.mean[metric], best.spread[metric])}"
    if comparison.split == "validation":
        value = _("{value} on the validation split").format(value=value)
    if math.isnan(best.mean[metric]):
        lost = all(run.results.get("diverged") for run in comparison.runs)
        text = (
            _("No variant is best: every run diverged.")
            if lost
            else _("No variant is best: no run has a value of {metric}.")
        )
        return text.format(metric=units.metric_name(metric))
    apart = reasons(comparison.obstacles)
    if apart and not others:
        return _("Nothing can be compared: {reason}.").format(reason=apart)
    if not others:
        text = _("“{variant}” is the only variant here: {value} over {seeds}")
        text = text.format(variant=best.variant, value=value, seeds=counted(len(best.seeds), "seed"))
    elif best.variant == comparison.baseline:
        text = _("The baseline “{variant}” {leads} ({value}){standing}").format(
            variant=best.variant, leads=_leads(comparison), value=value, standing=_standing(comparison, others)
        )
    else:
        text = _("“{variant}” {leads} ({value}) {against}").format(
            variant=best.variant,
            leads=_leads(comparison),
            value=value,
            against=_against(comparison, best.difference),
        )
    if best.diverged:
        its = _("; {number} of its {runs} runs diverged and are not in that mean")
        text += its.format(number=best.diverged, runs=len(best.seeds))
    diverged = _diverged([row for row in comparison.comparable if row is not best])
    more = f"{_beyond(comparison)}{_same_everywhere(comparison)}{_in_two_groups(comparison)}"
    left_out = _(" Not compared: {reason}.").format(reason=apart) if apart else ""
    return f"{_('{sentence}.').format(sentence=text)}{diverged}{left_out}{more}"


def _beyond(comparison: Comparison) -> str:
    """In what variants differ beside what is compared: their difference may be owed to that."""
    texts = [
        _(
            " “{variant}” also differs from “{baseline}” in what is not compared, which may explain its score: "
            "{sentence}."
        ).format(variant=variant, baseline=comparison.baseline, sentence=sentence)
        for variant, sentence in comparison.beyond.items()
    ]
    number = counted(len(texts) - NAMED, "other variant")
    more = _(" So do {variants}.").format(variants=number) if len(texts) > NAMED else ""
    return "".join(texts[:NAMED]) + more


def _same_everywhere(comparison: Comparison) -> str:
    """Where all runs have one value, as 0% where nothing has been learned yet: that it is the metric's doing."""
    rows, metric = comparison.comparable, comparison.metric
    same = [math.isclose(row.mean[metric], rows[0].mean[metric], rel_tol=1e-12) for row in rows]
    if len(rows) < 2 or not all(same) or any(row.spread[metric] or row.diverged for row in rows):
        return ""
    other = "" if metric == "loss" else _(" (--metric loss may)")
    said = _(" Every run has the same {metric}, so it decides nothing{other}.")
    return said.format(metric=units.metric_name(metric), other=other)


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
    return _(
        " Runs are in two groups, {low} up to {end} and {high} from {start} on, with some of {names} in both: there a "
        "t test of {seeds} seeds may find differences that are not there. Compare how many runs of each variant are in "
        "which group."
    ).format(
        low=groups.low,
        end=ends[0],
        high=groups.high,
        start=ends[1],
        names=enumerated([f"“{name}”" for name in groups.divided]),
        seeds=min(first),
    )


def _leads(comparison: Comparison) -> str:
    """`has the best mean`, or with whom it shares it: equal means may be written to different digits."""
    metric = comparison.metric
    best, *rest = comparison.comparable
    equal = [f"“{row.variant}”" for row in rest if math.isclose(row.mean[metric], best.mean[metric], rel_tol=1e-12)]
    if equal:
        return _("shares the best mean with {names}").format(names=enumerated(equal))
    sign = 1 if comparison.higher_is_better else -1
    if any(sign * row.mean[metric] > sign * best.mean[metric] for row in rest):
        return _("leads, as a run that diverged counts as the worst")
    return _("has the best mean")


def _standing(comparison: Comparison, others: list[Row]) -> str:
    """How the others stand to a baseline that leads."""
    differences = [row.difference for row in others if row.difference]
    words = {"worse": _("worse"), "equal": _("equal"), "equivalent": _no_larger(comparison), "better": _("better")}
    count = {word: sum(item.verdict == verdict for item in differences) for verdict, word in words.items()}
    unclear, unpaired = len(differences) - sum(count.values()), len(others) - len(differences)
    pairs = max((item.pairs for item in differences if item.verdict == "undetermined"), default=0)
    seeds = counted(pairs, "seed")
    if len(others) == 1:
        if unclear or unpaired:
            more = _more(differences[0].more) if differences else ""
            unclear_by = _(", but {seeds} cannot tell these apart{more}").format(seeds=seeds, more=more)
            return unclear_by if pairs else _(", but no seed in common tells these apart")
        said = _("; the other is {word}, paired over {seeds}")
        return said.format(word=words[differences[0].verdict], seeds=_seeds(differences[0]))
    parts = [
        (_("{number} is {word}") if number == 1 else _("{number} are {word}")).format(number=number, word=word)
        for word, number in count.items()
        if number
    ]
    apart = _("{number} is undetermined with {seeds}") if unclear == 1 else _("{number} are undetermined with {seeds}")
    parts += [apart.format(number=unclear, seeds=seeds)] if unclear else []
    share = _("{number} shares no seed with it") if unpaired == 1 else _("{number} share no seed with it")
    parts += [share.format(number=unpaired)] if unpaired else []
    return _("; of {number} others, {parts}").format(number=len(others), parts=_(", ").join(parts))


def _no_larger(comparison: Comparison) -> str:
    return _("within {effect} of it").format(effect=smallest(comparison)) if comparison.question.smallest_effect else ""


def _more(more: MoreSeeds | None) -> str:
    """How many more seeds would likely settle it."""
    if more is None:
        return ""
    text = _(" (likely more than {seeds})") if more.more_than else _(" (likely {seeds})")
    return text.format(seeds=counted(more.number, "more seed"))


def _diverged(others: list[Row]) -> str:
    """Which variants diverged: their means are those of the runs that did not."""
    text = _("“{variant}” in {number} of {runs}")
    lost = [
        text.format(variant=row.variant, number=row.diverged, runs=counted(len(row.seeds), "run"))
        for row in others
        if row.diverged
    ]
    return _(" Diverged: {runs}.").format(runs=_(", ").join(lost)) if lost else ""


def _against(comparison: Comparison, difference: Verdict | None) -> str:
    """How the leader stands to the baseline."""
    base = _("the baseline “{variant}”").format(variant=comparison.baseline)
    if any(row.variant == comparison.baseline and row.diverged == len(row.seeds) for row in comparison.rows):
        if difference is None or not difference.is_settled:
            text = _("but every run of {base} diverged: nothing can be measured against it (--baseline names another)")
            return text.format(base=base)
        text = _("and is {word} than {base}, every run of which diverged: {seeds}")
        return text.format(word=_(VERDICTS[difference.verdict]), base=base, seeds=_seeds(difference))
    if difference is None:
        return _("but shares no finished seed with {base}: nothing tells these apart").format(base=base)
    text = {
        "undetermined": _("but {seeds} cannot tell these apart: {change} against {base}{more}"),
        "equal": _("and equals {base} on each of {seeds}"),
        "equivalent": _("and differs from {base} by no more than {effect}: {change}, {seeds}"),
        "better": _("and is better than {base}: {change}, {seeds}"),
        "worse": _("and is worse than {base}: {change}, {seeds}"),
    }[difference.verdict]
    return text.format(
        base=base,
        seeds=_seeds(difference),
        change=change(comparison, difference),
        effect=smallest(comparison) if difference.verdict == "equivalent" else "",
        more=_more(difference.more),
    )


def _seeds(difference: Verdict) -> str:
    """How many seeds a difference is of: `4 seeds`, or `3 of 4 seeds, the last look`."""
    if difference.looked_at == difference.pairs:
        return counted(difference.pairs, "seed")
    text = _("{number} of {seeds}, the last look")
    return text.format(number=difference.looked_at, seeds=counted(difference.pairs, "seed"))


def change(comparison: Comparison, difference: Verdict) -> str:
    """A difference with its interval: `+1.2 points (95%: −0.3 to +2.7)`."""
    mean = mean_difference(comparison, difference)
    if difference.low is None and difference.high is None:
        by_signs = difference.diverged or difference.baseline_diverged
        text = (
            _("{mean}, no interval from {seeds} by a test of signs")
            if by_signs
            else _("{mean}, no interval from {seeds}")
        )
        return text.format(mean=mean, seeds=_seeds(difference))
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
        one = _("above {number}").format(number=low) if low else _("below {number}").format(number=high)
        return one if low or high else "–"
    return _("{low} to {high}").format(low=low, high=high)


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
    if difference.verdict == "equivalent":
        return _("within ±{effect}").format(effect=smallest(comparison))
    return _(VERDICTS[difference.verdict])


def smallest(comparison: Comparison) -> str:
    """The smallest effect of interest with its unit: `0.5 points`."""
    effect = comparison.question.smallest_effect
    if comparison.unit(comparison.metric) != "%":
        return f"{effect:g}"
    return (_("{number} point") if effect == 1 else _("{number} points")).format(number=f"{effect:g}")
