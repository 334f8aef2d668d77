"""The columns of the table: what stands over them, what a row holds, and what they mean, as plain text."""

from __future__ import annotations

import math
from collections.abc import Callable

from paddle_tfm import units
from paddle_tfm.colours import colour
from paddle_tfm.comparison.runs.finished import directions
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import change, interval, mean_difference, smallest, verdict_text
from paddle_tfm.tabular import ESSENTIAL, Column, Table
from paddle_tfm.units import listed, plural

SPREAD = "“±” is the standard deviation (n − 1) over seeds: how far single runs scatter. One seed has none."
FACTS = (
    "Tokens are target tokens of training, per second; the time is one run's training. Diverged runs are in no mean."
)
DIVERGED = "In the ranking a run that diverged has the worst value that the metric has, or that is here."


def header(comparison: Comparison) -> list[str]:
    """The names of the columns of the whole table, an arrow beside each metric: ↑ where higher is better."""
    metrics = [heading(comparison, name) for name in comparison.shown()]
    return ["variant", "seeds", metrics[0], "difference", *metrics[1:], "parameters", "tokens/s", "time", "diverged"]


def cells(comparison: Comparison, row: Row) -> list[str]:
    """What `header` announces, as plain text."""
    metrics = [around(comparison, name, row) for name in comparison.shown()]
    if row.variant == comparison.baseline:
        against = "baseline" if len(comparison.rows) > 1 else "–"
    else:
        difference = row.difference
        words = difference and f"{change(comparison, difference)} {verdict_text(comparison, difference)}"
        against = words or incomparable(comparison, row)
    facts = f"{row.parameters:,}", f"{row.tokens_per_second:,.0f}", clock(row.seconds), lost(row)
    return [row.variant, seeds(row), metrics[0], against, *metrics[1:], *facts]


def around(comparison: Comparison, name: str, row: Row) -> str:
    """`mean ± spread` of a variant's metric, both to the same digit; the mean alone where there is no spread."""
    return units.plus_minus(row.mean.get(name), row.spread.get(name), comparison.unit(name))


def notes(comparison: Comparison) -> list[str]:
    """What the columns mean, and what must stand beside a score for others to compare theirs with it."""
    diverged = [DIVERGED] if any(row.diverged for row in comparison.rows) else []
    signatures = (f"{units.metric_name(name)}: {text}" for name, text in comparison.signatures.items())
    return [SPREAD, method(comparison), FACTS, *diverged, *signatures]


def method(comparison: Comparison) -> str:
    """How a verdict comes about, in a few sentences."""
    text = (
        f"The difference is to the baseline, paired by seed, with its {CONFIDENCE:.0%} interval (Student's t"
        f"{adjustment(comparison)}); it is called better or worse only where the interval excludes 0."
    )
    if comparison.question.smallest_effect is not None:
        text += f" “Within ±{smallest(comparison)}”: the interval lies there, and a smaller difference does not matter."
    differences = [row.difference for row in comparison.rows if row.difference]
    if any(difference.diverged or difference.baseline_diverged for difference in differences):
        text += " A run that diverged loses its pair: the difference is then the median, and the test that of signs."
    return text


def how_many_seeds(comparison: Comparison) -> str:
    """`5 seeds`, or `3 to 5 seeds` where variants were settled by fewer."""
    counts = [len(row.seeds) for row in comparison.rows]
    low, high = min(counts), max(counts)
    return plural(high, "seed") if low == high else f"{low} to {high} seeds"


def adjustment(comparison: Comparison) -> str:
    """What intervals are adjusted for: `, adjusted for 3 variants (Holm) and looks after 3, 5 and 8 seeds`."""
    differences, plan = [row.difference for row in comparison.rows if row.difference], comparison.question.plan
    reasons = [f"{len(differences)} variants (Holm)"] if len(differences) > 1 else []
    if plan is not None:
        reasons.append(f"looks after {listed(plan.looks)} seeds" if plan.looks else "looks after every seed (e-values)")
    elif earlier := sorted({look for each in differences for look in each.looks if look < each.pairs}):
        reasons.append(f"looks after {listed(earlier)} seeds")
    elif any(each.looks for each in differences):
        reasons.append("seeds that may be added")
    return f", adjusted for {' and '.join(reasons)}" if reasons else ""


def clock(seconds: float) -> str:
    """Minutes and seconds: 1:05."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


def seeds(row: Row) -> str:
    """Each seed, or how many they are."""
    return ", ".join(map(str, row.seeds)) if len(row.seeds) <= 5 else f"{len(row.seeds)} seeds"


def lost(row: Row) -> str:
    """How many of a variant's runs diverged."""
    return f"{row.diverged} of {len(row.seeds)}" if row.diverged else "0"


def incomparable(comparison: Comparison, row: Row) -> str:
    """Why a variant has no difference to the baseline."""
    obstacle = comparison.obstacles.get(row.variant)
    return obstacle.words if obstacle else "no finished seed in common"


def heading(comparison: Comparison, name: str) -> str:
    """A metric's name with an arrow: ↑ where higher is better."""
    arrows = {True: "\u00a0↑", False: "\u00a0↓", None: ""}
    higher = directions(comparison.runs).get(units.metric_and_test(name)[0])
    return f"{units.metric_name(name)}{arrows[higher]}"


VERDICT_STYLES = {"better": "green", "worse": "red", "undetermined": "yellow", "equivalent": "blue"}


def table(comparison: Comparison) -> Table[Row]:
    """The comparison for a page of any width, which keeps to the last what it is read for: the variant, its score and
    the verdict."""
    title = f"{comparison.name}: {len(comparison.runs)} run{'' if len(comparison.runs) == 1 else 's'}"
    if comparison.smaller:
        title += f" at the largest size; {len(comparison.smaller)} at smaller ones: see “By size”"
    first, *others = comparison.shown()
    against = _against(comparison) if len(comparison.rows) > 1 else []
    # The loss comes after what the recipe measures: it decides nothing, unless it is what decides.
    measured = [name for name in others if name != "loss"]
    some_diverged = any(row.diverged for row in comparison.rows)
    columns = [
        Column[Row](
            "variant",
            lambda row: row.variant,
            lambda row: {"variant": row.variant},
            style=lambda row: colour(comparison.numbers[row.variant]),
        ),
        _metric(comparison, first, ESSENTIAL),
        *against,
        *(_metric(comparison, name, 80 - i) for i, name in enumerate(measured)),
        *(_metric(comparison, name, 20) for name in others if name not in measured),
        _number("parameters", lambda row: row.parameters, lambda row: f"{row.parameters:,}", 50),
        _number("tokens/s", lambda row: row.tokens_per_second, lambda row: f"{row.tokens_per_second:,.0f}", 30),
        _number("time", lambda row: row.seconds, lambda row: clock(row.seconds), 40),
        _number("seeds", lambda row: row.seeds, seeds, 45),
        # What diverged is in no mean: nobody should read a score without it.
        _number("diverged", lambda row: row.diverged, lost, ESSENTIAL if some_diverged else 10),
    ]
    return Table(columns, comparison.rows, title)


def _against(comparison: Comparison) -> list[Column[Row]]:
    """How a variant stands to the baseline: verdict, difference, interval."""

    def verdict(row: Row) -> str:
        if row.variant == comparison.baseline:
            return "baseline"
        return verdict_text(comparison, row.difference) if row.difference else incomparable(comparison, row)

    def difference(row: Row) -> str:
        return mean_difference(comparison, row.difference) if row.difference else ""

    def interval_text(row: Row) -> str:
        return interval(comparison, row.difference) if row.difference else ""

    def colour(row: Row) -> str:
        return VERDICT_STYLES.get(row.difference.verdict, "") if row.difference else ""

    def ends(row: Row) -> dict[str, object]:
        return {**dict(zip(("low", "high"), _ends(row) or (None, None))), "p": row.difference and row.difference.p}

    def more(row: Row) -> str:
        if row.difference is None or row.difference.more is None:
            return ""
        return f"{'>' if row.difference.more.more_than else '≈'}{row.difference.more.number}"

    def number(row: Row) -> dict[str, object]:
        return {"more_seeds": row.difference and row.difference.more and row.difference.more.number}

    def said(row: Row) -> dict[str, object]:
        return {"verdict": row.difference.verdict if row.difference else verdict(row)}

    is_open = any(row.difference and row.difference.more for row in comparison.rows)
    return [
        Column("verdict", verdict, said, style=colour),
        Column("difference", difference, lambda row: {"difference": row.difference and row.difference.mean}, 95, True),
        Column(f"{CONFIDENCE:.0%} interval", interval_text, ends, 90 if any(map(_ends, comparison.rows)) else 5, True),
        Column("more seeds", more, number, 85 if is_open else 5, True),
    ]


def _metric(comparison: Comparison, name: str, importance: int) -> Column[Row]:
    """Mean and spread of a metric."""

    def values(row: Row) -> dict[str, object]:
        mean = row.mean.get(name, math.nan)
        return {name: mean if math.isfinite(mean) else None, f"{name}_spread": row.spread.get(name)}

    return Column(heading(comparison, name), lambda row: around(comparison, name, row), values, importance, right=True)


def _number(name: str, value: Callable[[Row], object], text: Callable[[Row], str], importance: int) -> Column[Row]:
    key = {"tokens/s": "tokens_per_second", "time": "seconds"}.get(name, name)
    return Column(name, text, lambda row: {key: value(row)}, importance, right=True)


def _ends(row: Row) -> tuple[float, float] | None:
    """The interval's ends; None where there is none."""
    difference = row.difference
    if difference is None or difference.low is None or difference.high is None:
        return None
    return difference.low, difference.high
