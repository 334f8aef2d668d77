"""A comparison as a table of text, for a terminal of any width and for programs."""

from __future__ import annotations

import math
from collections.abc import Callable

from paddle_tfm.colours import colour
from paddle_tfm.comparison.columns import around, clock, heading, incomparable, lost, seeds
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import interval, mean_difference, verdict_text
from paddle_tfm.tabular import ESSENTIAL, Column, Table

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
