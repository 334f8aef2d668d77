"""Tuning: what was chosen for each variant, and the verdicts without it."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.columns import around
from paddle_tfm.comparison.report.recipe_words import component
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.tuning_record import Chosen, Tuned, read_tuned, untuned
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import change, verdict_text
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table, column


class Tuning(Section):
    """The values that trials chose for each variant. The scores above are of these values, on seeds that chose
    nothing."""

    heading = "Tuning"
    summary = "the trials of each variant, and what they chose"
    place = 160

    def applies(self, facts: Facts) -> bool:
        """Whether the runs are of one sweep whose variants were tuned."""
        return bool(facts.once(_tuned).variants)

    def tables(self, facts: Facts) -> dict[str, Table]:
        return {"tuning": _chosen(facts, facts.once(_tuned))}

    def text(self, facts: Facts) -> list[str]:
        """What was chosen, and where the best is still the outermost that was tried."""
        lines = []
        for name, item in _variants(facts, facts.once(_tuned)).items():
            edge = f" (nothing was tried beyond this {' and '.join(item.at_edge)})" if item.at_edge else ""
            lines.append(f"tuned  {name}: {item.text()}{edge}")
        return lines

    def data(self, facts: Facts) -> dict[str, Any]:
        tuned = facts.once(_tuned)
        return {
            "metric": tuned.metric,
            "spaces": [dict(space) for space in tuned.spaces],
            "chosen": {name: {"values": item.values, "score": item.score} for name, item in tuned.variants.items()},
        }


def _tuned(facts: Facts) -> Tuned:
    return read_tuned(facts.comparison) or Tuned("", [{}], {})


def _variants(facts: Facts, tuned: Tuned) -> dict[str, Chosen]:
    """Those of the comparison, the best first."""
    rows = (row.variant for row in facts.comparison.rows)
    return {variant: tuned.variants[variant] for variant in rows if variant in tuned.variants}


def _chosen(facts: Facts, tuned: Tuned) -> Table:
    unit, first, last = facts.comparison.unit(tuned.metric), tuned.spaces[0], tuned.spaces[-1]

    def value(path: str) -> Column[tuple[str, Chosen]]:
        def text(row: tuple[str, Chosen]) -> str:
            return f"{component(row[1].values[path])}{' (outermost)' if path in row[1].at_edge else ''}"

        return Column(path, text, lambda row: {path: row[1].values[path]}, right=True)

    score = f"validation {units.metric_name(tuned.metric)}"
    columns = [
        column("variant", of=lambda row: row[0]),
        *map(value, first),
        column(tuned.metric, score, partial(units.text, unit=unit), right=True, of=lambda row: row[1].score),
        column("trials", right=True, of=lambda row: row[1].trials),
        column("diverged", right=True, of=lambda row: row[1].diverged),
        *([column("halved", right=True, of=lambda row: row[1].stopped)] if tuned.is_halved else []),
    ]
    wider = [path for path in first if first[path] != last[path]]
    before = f"; widened from {tuned.space(wider, first=True)}" if wider else ""
    title = f"Chosen on the validation split from {tuned.space()}{before}"
    return Table(columns, list(_variants(facts, tuned).items()), title)


CHANGES = "changes with tuning"


class Untuned(Section):
    """Each verdict beside the one that the recipe's own values give, on the same seeds."""

    heading = "Without tuning"
    summary = "the same differences with the values of the recipe"
    place = 165

    def applies(self, facts: Facts) -> bool:
        """Whether runs with the recipe's own values are there (`tune: {untuned: true}`)."""
        return facts.once(_own) is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        own = facts.once(_own)
        return {} if own is None else {"untuned": _verdicts(facts.comparison, own)}

    def text(self, facts: Facts) -> list[str]:
        """A line for each verdict that changes; one where none does."""
        lines = [
            f"untuned  {variant} {each['untuned']}, and tuned {each['tuned']}: the verdict {CHANGES}"
            for variant, each in self.data(facts).items()
            if each["changes"]
        ]
        where = " at the largest size" if facts.comparison.smaller else ""
        return lines or [f"untuned  no verdict{where} changes with tuning"]

    def data(self, facts: Facts) -> dict[str, dict[str, Any]]:
        own = facts.once(_own)
        rows = facts.comparison.rows if own else []
        return {row.variant: _record(facts.comparison, own, row.variant) for row in rows if own}


def _own(facts: Facts) -> Comparison | None:
    """The comparison of the runs with the recipe's own values."""
    return untuned(facts.comparison)


def _record(comparison: Comparison, own: Comparison, variant: str) -> dict[str, Any]:
    before, after = (_verdict(of, variant) for of in (own, comparison))
    row = _row(own, variant)
    mean = row.mean[own.metric] if row else math.nan
    changes = bool(before and after) and before != after
    return {"untuned": before, "tuned": after, "changes": changes, "mean": mean if math.isfinite(mean) else None}


def _verdict(comparison: Comparison, variant: str) -> str:
    """The verdict on a variant in a word; "" of the baseline, and where there is none."""
    row = _row(comparison, variant)
    return verdict_text(comparison, row.difference) if row and row.difference else ""


def _row(comparison: Comparison, variant: str) -> Row | None:
    return next((row for row in comparison.rows if row.variant == variant), None)


def _verdicts(comparison: Comparison, own: Comparison) -> Table[Row]:
    def mean(of: Comparison, row: Row) -> str:
        same = _row(of, row.variant)
        return "–" if same is None else around(of, of.metric, same)

    def said(of: Comparison, row: Row) -> str:
        difference = getattr(_row(of, row.variant), "difference", None)
        if row.variant == comparison.baseline or difference is None:
            return "baseline" if row.variant == comparison.baseline else "–"
        return f"{verdict_text(of, difference)}: {change(of, difference)}"

    def record(row: Row) -> dict[str, Any]:
        return {"variant": row.variant, **_record(comparison, own, row.variant)}

    def shown_only(heading: str, text: Any, prose: bool = False) -> Column[Row]:
        return Column(heading, text, lambda row: {}, right=not prose, prose=prose)

    columns = [
        Column[Row]("variant", lambda row: row.variant, record),
        shown_only("untuned", partial(mean, own)),
        shown_only("verdict", partial(said, own), prose=True),
        shown_only("tuned", partial(mean, comparison)),
        shown_only("verdict", partial(said, comparison), prose=True),
        shown_only("", lambda row: CHANGES if record(row)["changes"] else "", prose=True),
    ]
    what = f"{comparison.split} {units.metric_name(comparison.metric)}"
    return Table(columns, comparison.rows, f"{what} with the recipe's own values, and with those that were chosen")
