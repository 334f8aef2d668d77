"""Positional encodings as heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.figures.heat_map import HeatMap, HeatMaps
from paddle_tfm.comparison.report.section_input import Facts

if TYPE_CHECKING:
    from paddle_tfm.comparison.report.encodings import Picture

MOST = 6  # encodings that are shown, one variant of each
SIZES = {"vectors": ((6.2, 2.2), 1), "by distance": ((4.4, 1.9), 2)}  # of maps; in a row
NOTE = (
    "One variant of each encoding, from its best checkpoint. A distance is the key’s position minus the query’s; "
    "decoders look back only. What depends on the texts (contextual positions, a term in the values) is not shown, and "
    "what depends on the query by its size."
)
Group = list[tuple[str, "Picture"]]  # variant and picture, of one kind


class Encodings(ChartedSection):
    """What each positional encoding adds at each position, and what it does to scores by distance."""

    heading = "Positional encodings"
    place = 360
    slow = True

    def applies(self, facts: Facts) -> bool:
        """Whether a variant has an encoding that can be shown."""
        return bool(facts.once(_shown)[0])

    def charts(self, facts: Facts) -> dict[str, HeatMaps]:
        """A figure for each thing that encodings do, a map for each that does it."""
        return {name: _maps(group) for name, group in facts.once(_shown)[0].items()}

    def notes(self, facts: Facts) -> list[str]:
        """What is shown, and what is not."""
        return [NOTE, *facts.once(_shown)[1], *facts.models.remarks]


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
    """Those of a variant; and why there are none."""
    from paddle_tfm.comparison.report.encodings import pictures

    result = facts.run_of(variant)
    if (run := facts.models(result)) is None:
        return [], facts.models.why(result)
    try:
        return pictures(run.model, run.plan.sound_model), ""
    except Exception as error:  # a plugin's code
        return [], f"{variant}: its encoding cannot be shown ({type(error).__name__}: {error})"


def _maps(group: Group) -> HeatMaps:
    maps = [HeatMap(f"{name}: {item.where}", item.values, item.rows, item.columns) for name, item in group]
    first = group[0][1]
    size, columns = SIZES[first.what]
    return HeatMaps(maps, (*first.axes, first.meaning), "signed", size, columns, shared=False)
