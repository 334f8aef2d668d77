"""Positional encodings as heat maps."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.figures.heat import HeatMap, heat_figure
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.errors import UserError
from paddle_tfm.plotting import page_figure
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paddle_tfm.comparison.report.encodings import Picture

MOST = 6  # encodings that are shown, one variant of each
NOTE = (
    "One variant of each encoding: from its best checkpoint, or from its recipe where the encoding has no parameters. "
    "A distance is the key’s position minus the query’s; decoders look back only. What depends on the texts "
    "(contextual positions, a term in the values) is not shown, and what depends on the query by its size."
)


class Shown(NamedTuple):
    """A picture of a variant, or why there is none of it."""

    variant: str
    picture: Picture | None
    lacking: str = ""


class Encodings(Section):
    """What each positional encoding adds at each position, the products of these vectors, and what it does to scores by
    distance."""

    heading = "Positional encodings"
    place = 360
    slow = True

    def applies(self, facts: Facts) -> bool:
        """Whether a variant has an encoding that can be shown."""
        return bool(_groups(facts))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each position or head of each variant, a column for each dimension, position or distance."""
        return {name: _table(group) for name, group in _groups(facts).items()}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """A figure for each thing that encodings do, a map for each that does it."""
        return {name: _figure(group) for name, group in _groups(facts).items()}

    def html(self, facts: Facts) -> str:
        """The figures."""
        figures = "".join(page_figure(figure) for figure in self.figures(facts).values())
        lacking = dict.fromkeys(item.lacking for item in facts.once(_shown) if item.lacking)
        return figures + "".join(
            f'<p class="note">{escape(text)}</p>' for text in [NOTE, *lacking, *facts.models.remarks]
        )


def _shown(facts: Facts) -> list[Shown]:
    """The pictures of all encodings."""
    return [item for variant in _representatives(facts) for item in _pictures(facts, variant)]


def _groups(facts: Facts) -> dict[str, list[tuple[str, Picture]]]:
    """Name of a figure → the variants and pictures in it: those of one kind."""
    groups: dict[tuple[str, str], list[tuple[str, Picture]]] = {}
    for item in facts.once(_shown):
        if item.picture is not None:
            key = item.picture.what, item.picture.meaning
            groups.setdefault(key, []).append((item.variant, item.picture))
    return {f"encoding-{number}": group for number, group in enumerate(groups.values(), 1)}


def _representatives(facts: Facts) -> list[str]:
    """A variant of each encoding, the baseline's first."""
    names = [facts.baseline, *(row.variant for row in facts.comparison.rows if row.variant != facts.baseline)]
    by_encoding: dict[str, str] = {}
    for name in names:
        model = facts.recipes[name].get("model")
        if isinstance(model, dict):
            by_encoding.setdefault(recipe_words.component(model.get("position", "")), name)
    return list(by_encoding.values())[:MOST]


def _pictures(facts: Facts, variant: str) -> list[Shown]:
    from paddle_tfm.comparison.report.encodings import pictures, untrained
    from paddle_tfm.train.run import plan_of

    result = facts.run_of(variant)
    try:
        plan = plan_of(result.folder, facts.registry).sound_model
        run = facts.models(result)
        drawn = pictures(untrained(plan) if run is None else run.model, plan, trained=run is not None)
    except UserError as error:
        return [Shown(variant, None, str(error))]
    except Exception as error:  # a plugin's code
        return [Shown(variant, None, f"{variant}: its encoding cannot be shown ({type(error).__name__}: {error})")]
    lacking = [Shown(variant, None, facts.models.why(result))] if run is None and not drawn else []
    return [*(Shown(variant, picture) for picture in drawn), *lacking]


def _figure(group: list[tuple[str, Picture]]) -> Figure:
    maps = [HeatMap(f"{name}: {item.where}", item.values, item.rows, item.columns) for name, item in group]
    first = group[0][1]
    size = {"vectors": (6.2, 2.2), "products": (3.0, 2.6)}.get(first.what, (4.4, 1.9))
    columns = {"vectors": 1, "products": 3}.get(first.what, 2)
    return heat_figure(maps, (*first.axes, first.meaning), "signed", size, columns, shared=False)


def _table(group: list[tuple[str, Picture]]) -> Table:
    rows = [
        {"variant": name, "where": item.where, item.axes[0]: label, **dict(zip(item.columns, values.tolist()))}
        for name, item in group
        for label, values in zip(item.rows, item.values)
    ]
    keys = dict.fromkeys(key for row in rows for key in row)
    return Table([_column(key) for key in keys], rows, group[0][1].meaning)


def _column(key: str) -> Column[dict[str, object]]:
    def text(row: dict[str, object]) -> str:
        value = row.get(key)
        return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)

    return Column(key, text, lambda row: {key: row.get(key)}, right=True)
