"""The table of a comparison: its columns, for a terminal, a page and programs, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from paddle_tfm import units
from paddle_tfm.colours import colour
from paddle_tfm.comparison.runs.finished import directions
from paddle_tfm.comparison.statistics import CONFIDENCE, MoreSeeds, Verdict
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import interval, mean_difference, smallest, verdict_text
from paddle_tfm.language import _, counted, english, enumerated
from paddle_tfm.tabular import ESSENTIAL, Column, Table, column

T = TypeVar("T")
SPREAD = (
    "“±” beside a variant's mean is the standard deviation (n − 1) over seeds: how far single runs scatter. One seed "
    "has none."
)
FACTS = (
    "Tokens are target tokens of training, per second; the time is one run's training. Diverged runs are in no mean."
)
DIVERGED = "In the ranking a run that diverged has the worst value that the metric has, or that is here."


def around(comparison: Comparison, name: str, row: Row) -> str:
    """`mean ± spread` of a variant's metric, both to the same digit; the mean alone where there is no spread."""
    return units.plus_minus(row.mean.get(name), row.spread.get(name), comparison.unit(name))


def notes(comparison: Comparison) -> list[str]:
    """What the columns mean, and what must stand beside a score for others to compare theirs with it."""
    diverged = [_(DIVERGED)] if any(row.diverged for row in comparison.rows) else []
    compared = [method(comparison)] if len(comparison.rows) > 1 else []
    signatures = (f"{units.metric_name(name)}: {text}" for name, text in comparison.signatures.items())
    return [_(SPREAD), *compared, _(FACTS), *diverged, *signatures]


def method(comparison: Comparison) -> str:
    """How a verdict comes about, in a few sentences."""
    text = _(
        "The difference to {baseline} is paired by seed, with its {confidence} interval (Student's t{adjustment}); it "
        "is called better or worse only where the interval excludes 0."
    ).format(baseline=comparison.baseline, confidence=f"{CONFIDENCE:.0%}", adjustment=adjustment(comparison))
    if comparison.question.smallest_effect is not None:
        within = _(" “Within ±{effect}”: the interval lies there, and a smaller difference does not matter.")
        text += within.format(effect=smallest(comparison))
    differences = [row.difference for row in comparison.rows if row.difference]
    if any(difference.diverged or difference.baseline_diverged for difference in differences):
        text += _(" A run that diverged loses its pair: the difference is then the median, and the test that of signs.")
    return text


def how_many_seeds(comparison: Comparison) -> str:
    """`5 seeds`, or `3 to 5 seeds` where variants were settled by fewer."""
    counts = [len(row.seeds) for row in comparison.rows]
    low, high = min(counts), max(counts)
    return counted(high, "seed") if low == high else _("{low} to {high} seeds").format(low=low, high=high)


def adjustment(comparison: Comparison) -> str:
    """What intervals are adjusted for: `, adjusted for 3 variants (Holm) and looks after 3, 5 and 8 seeds`."""
    differences, plan = [row.difference for row in comparison.rows if row.difference], comparison.question.plan
    number = counted(len(differences), "variant")
    reasons = [_("{variants} (Holm)").format(variants=number)] if len(differences) > 1 else []
    after = _("looks after {seeds} seeds")
    if plan is not None:
        reasons.append(after.format(seeds=enumerated(plan.looks)))
    elif earlier := sorted({look for each in differences for look in each.looks if look < each.pairs}):
        reasons.append(after.format(seeds=enumerated(earlier)))
    elif any(each.looks for each in differences):
        reasons.append(_("seeds that may be added"))
    return _(", adjusted for {reasons}").format(reasons=_(" and ").join(reasons)) if reasons else ""


def seeds(numbers: Sequence[int]) -> str:
    """Each seed, or how many they are."""
    return ", ".join(map(str, numbers)) if len(numbers) <= 5 else counted(len(numbers), "seed")


def lost(row: Row) -> str:
    """How many of a variant's runs diverged."""
    return _("{part} of {whole}").format(part=row.diverged, whole=len(row.seeds)) if row.diverged else "0"


def incomparable(comparison: Comparison, row: Row) -> str:
    """Why a variant has no difference to the baseline."""
    obstacle = comparison.obstacles.get(row.variant)
    return _(obstacle.words) if obstacle else _("no finished seed in common")


def heading(comparison: Comparison, name: str) -> str:
    """A metric's name with an arrow: ↑ where higher is better."""
    arrows = {True: "\u00a0↑", False: "\u00a0↓", None: ""}
    higher = directions(comparison.runs).get(units.metric_and_test(name)[0])
    return f"{units.metric_name(name)}{arrows[higher]}"


VERDICT_STYLES = {"better": "green", "worse": "red", "undetermined": "yellow", "equivalent": "blue"}


def table(comparison: Comparison) -> Table[Row]:
    """The comparison for a page of any width, which keeps to the last what it is read for: the variant, its score and
    the verdict."""
    title = f"{comparison.name}: {counted(len(comparison.runs), 'run')}"
    if comparison.smaller:
        smaller = _(" at the largest size; {number} at smaller ones: see “By size”")
        title += smaller.format(number=len(comparison.smaller))
    first, *others = comparison.shown()
    # The loss comes after what the recipe measures: it decides nothing, unless it is what decides.
    measured = [name for name in others if name != "loss"]
    # What diverged is in no mean: nobody should read a score without it.
    importance = ESSENTIAL if any(row.diverged for row in comparison.rows) else 10
    columns = [
        column("variant", of=lambda row: row.variant, style=lambda row: colour(comparison.numbers[row.variant])),
        metric(comparison, first, ESSENTIAL),
        *(_against(comparison) if len(comparison.rows) > 1 else []),
        *(metric(comparison, name, 80 - i) for i, name in enumerate(measured)),
        *(metric(comparison, name, 20) for name in others if name not in measured),
        column("parameters", None, "{:,}".format, 50, right=True, of=lambda row: row.parameters),
        column("tokens_per_second", "tokens/s", "{:,.0f}".format, 30, right=True, of=lambda row: row.tokens_per_second),
        column("seconds", "time", units.clock, 40, right=True, of=lambda row: row.seconds),
        column("seeds", None, seeds, 45, right=True, of=lambda row: row.seeds),
        Column("diverged", lost, lambda row: {"diverged": row.diverged}, importance, right=True),
    ]
    return Table(columns, comparison.rows, title)


def _against(comparison: Comparison) -> list[Column[Row]]:
    """How a variant stands to the baseline: verdict, difference, interval, and how many more seeds would tell."""

    def verdict(row: Row) -> str:
        if row.variant == comparison.baseline:
            return _("baseline")
        return verdict_text(comparison, row.difference) if row.difference else incomparable(comparison, row)

    def said(row: Row) -> dict[str, object]:
        with english():  # what programs read
            return {"verdict": row.difference.verdict if row.difference else verdict(row)}

    def style(row: Row) -> str:
        return VERDICT_STYLES.get(row.difference.verdict, "") if row.difference else ""

    return [
        Column("verdict", verdict, said, style=style),
        *difference_and_interval(comparison, comparison.rows, lambda row: row.difference),
        more_seeds(comparison.rows, lambda row: row.difference),
    ]


def more_seeds(rows: Sequence[T], of: Callable[[T], Verdict | None]) -> Column[T]:
    """How many more seeds would likely settle a difference; where all are settled, among the first columns to go."""

    def needed(row: T) -> MoreSeeds | None:
        return getattr(of(row), "more", None)

    def text(row: T) -> str:
        more = needed(row)
        return f"{'>' if more.more_than else '≈'}{more.number}" if more else ""

    def values(row: T) -> dict[str, object]:
        return {"more_seeds": getattr(needed(row), "number", None)}

    return Column("more seeds", text, values, 85 if any(map(needed, rows)) else 5, True)


def difference_and_interval(
    comparison: Comparison,
    rows: Sequence[T],
    of: Callable[[T], Verdict | None],
    none: str = "",
    numbers: Sequence[str] = ("low", "high", "p"),
) -> list[Column[T]]:
    """The columns of a difference to the baseline, and of its interval with these `numbers` for programs; `none`: what
    stands where a row has none. Where no row has an interval, that column is the first to go."""

    def has_both(difference: Verdict | None) -> bool:
        return difference is not None and difference.low is not None and difference.high is not None

    def shown(text: Callable[[Comparison, Verdict], str], row: T) -> str:
        difference = of(row)
        return none if difference is None else text(comparison, difference)

    def ends(row: T) -> dict[str, object]:
        return {name: getattr(of(row), name, None) for name in numbers}

    def mean(row: T) -> dict[str, object]:
        return {"difference": getattr(of(row), "mean", None)}

    wanted = 90 if any(has_both(of(row)) for row in rows) else 5
    return [
        Column("difference", partial(shown, mean_difference), mean, 95, True),
        Column("95% interval", partial(shown, interval), ends, wanted, True),
    ]


def metric(comparison: Comparison, name: str, importance: int = ESSENTIAL) -> Column[Row]:
    """Mean and spread of a metric."""

    def values(row: Row) -> dict[str, object]:
        mean = row.mean.get(name, math.nan)
        return {name: mean if math.isfinite(mean) else None, f"{name}_spread": row.spread.get(name)}

    return Column(heading(comparison, name), lambda row: around(comparison, name, row), values, importance, right=True)
