"""Positional encodings as heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.figures.heat_map import HeatMap, HeatMaps
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.errors import UserError
from paddle_tfm.tabular import Table, column

if TYPE_CHECKING:
    from paddle_tfm.comparison.report.encodings import Picture

MOST = 6  # encodings that are shown, one variant of each
SIZES = {"vectors": ((6.2, 2.2), 1), "products": ((3.0, 2.6), 3), "by distance": ((4.4, 1.9), 2)}  # of maps; in a row
NOTE = (
    "One variant of each encoding: from its best checkpoint, or from its recipe where the encoding has no parameters. "
    "A distance is the key’s position minus the query’s; decoders look back only. What depends on the texts "
    "(contextual positions, a term in the values) is not shown, and what depends on the query by its size."
)
Group = list[tuple[str, "Picture"]]  # variant and picture, of one kind


class Encodings(ChartedSection):
    """What each positional encoding adds at each position, the products of these vectors, and what it does to scores by
    distance."""

    heading = "Positional encodings"
    place = 360
    slow = True

    def applies(self, facts: Facts) -> bool:
        """Whether a variant has an encoding that can be shown."""
        return bool(facts.once(_shown)[0])

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each position or head of each variant, a column for each dimension, position or distance."""
        return {name: _table(group) for name, group in facts.once(_shown)[0].items()}

    def charts(self, facts: Facts) -> dict[str, HeatMaps]:
        """A figure for each thing that encodings do, a map for each that does it."""
        return {name: _maps(group) for name, group in facts.once(_shown)[0].items()}

    def notes(self, facts: Facts) -> list[str]:
        """What is shown, and what is not."""
        return [NOTE, *facts.once(_shown)[1], *facts.models.remarks]

    def html(self, facts: Facts) -> str:
        """The figures; the tables have hundreds of numbers, and are files."""
        return self.without_tables(facts)


def _shown(facts: Facts) -> tuple[dict[str, Group], list[str]]:
    """The pictures of one kind, by the name of their figure; and why some are lacking."""
    groups: dict[tuple[str, str], Group] = {}
    lacking: dict[str, None] = {}
    for variant in _representatives(facts):
        pictures, why = _pictures(facts, variant)
        for picture in pictures:
            groups.setdefault((picture.what, picture.meaning), []).append((variant, picture))
        lacking |= {why: None} if why else {}
    return {f"encoding-{number}": group for number, group in enumerate(groups.values(), 1)}, list(lacking)


def _representatives(facts: Facts) -> list[str]:
    """A variant of each encoding, the baseline's first."""
    by_encoding: dict[str, str] = {}
    for name in facts.numbers:
        model = facts.recipes[name].get("model")
        if isinstance(model, dict):
            by_encoding.setdefault(recipe_words.component(model.get("position", "")), name)
    return list(by_encoding.values())[:MOST]


def _pictures(facts: Facts, variant: str) -> tuple[list[Picture], str]:
    """Those of a variant; and why there are none, or not all."""
    from paddle_tfm.comparison.report.encodings import pictures, untrained
    from paddle_tfm.train.run import plan_of

    result = facts.run_of(variant)
    try:
        plan = plan_of(result.folder, facts.registry).sound_model
        run = facts.models(result)
        drawn = pictures(untrained(plan) if run is None else run.model, plan, trained=run is not None)
    except UserError as error:
        return [], str(error)
    except Exception as error:  # a plugin's code
        return [], f"{variant}: its encoding cannot be shown ({type(error).__name__}: {error})"
    return drawn, "" if drawn or run is not None else facts.models.why(result)


def _maps(group: Group) -> HeatMaps:
    maps = [HeatMap(f"{name}: {item.where}", item.values, item.rows, item.columns) for name, item in group]
    first = group[0][1]
    size, columns = SIZES[first.what]
    return HeatMaps(maps, (*first.axes, first.meaning), "signed", size, columns, shared=False)


def _table(group: Group) -> Table:
    rows = [
        {"variant": name, "where": item.where, item.axes[0]: label, **dict(zip(item.columns, values.tolist()))}
        for name, item in group
        for label, values in zip(item.rows, item.values)
    ]

    def number(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    keys = dict.fromkeys(key for row in rows for key in row)
    rows = [dict.fromkeys(keys) | row for row in rows]
    columns = [column(key, None, number, right=True) for key in keys]
    return Table(columns, rows, group[0][1].meaning)
