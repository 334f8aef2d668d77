"""Where the chance in each difference comes from: seeds, or the items of the test set."""

from __future__ import annotations

from paddle_tfm import units
from paddle_tfm.comparison.chance import ITEM, Chance, chance
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column

NOTE = (
    "Each number is one standard deviation of the mean difference to the baseline. The intervals of this page are "
    "about other seeds on these test items; how far other items of the same kind could move a difference stands here "
    "beside it. More seeds narrow the first, only more items the second. “Seed × item” is what is left: items that one "
    "seed moves and another does not, narrowed by both. “Total” is the root of the sum of the three squares."
)


class Chances(Section):
    """The standard deviation that other seeds, and other test items, give to each difference."""

    heading = "Where the chance comes from"
    place = 130

    def applies(self, facts: Facts) -> bool:
        """Whether there are two pairs of runs of some variant with predictions of the same texts, by a metric of
        them."""
        return bool(facts.once(_chances))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each variant beside the baseline."""
        comparison = facts.comparison
        unit = comparison.unit(comparison.metric)

        def spread(value: float) -> str:
            return units.difference(value, unit, value).removeprefix("+")

        rows = [{"variant": variant, **_record(item)} for variant, item in facts.once(_chances).items()]
        columns = [
            column("variant"),
            column("seeds", right=True),
            column("items", "test items", "{:,}".format, right=True),
            *(column(name, title, spread, right=True) for name, title in _SOURCES.items()),
            column("limited_by", "limited by"),
        ]
        metric = f"{comparison.split} {units.metric_name(comparison.metric)}"
        title = f"Chance in the mean difference of {metric} to {comparison.baseline}, standard deviations"
        return {"chance": Table(columns, rows, title)}

    def html(self, facts: Facts) -> str:
        """The table and what it means."""
        return f'<p class="note">{NOTE}</p>{super().html(facts)}'

    def data(self, facts: Facts) -> dict[str, dict[str, object]]:
        """variant → the same numbers."""
        return {variant: _record(item) for variant, item in facts.once(_chances).items()}


def _chances(facts: Facts) -> dict[str, Chance]:
    """variant → where the chance in its difference to the baseline comes from; of those that can be compared, by the
    deciding metric, where there are predictions."""
    metric, base = facts.text_metrics().get(facts.comparison.learned), facts.predictions.get(facts.baseline)
    if metric is None or base is None:
        return {}
    compared = [row.variant for row in facts.comparison.comparable if row.variant != facts.baseline]
    chances = {variant: chance(metric, facts.predictions.get(variant, {}), base) for variant in compared}
    return {variant: item for variant, item in chances.items() if item is not None}


_SOURCES = {"of_seeds": "other seeds", "of_items": "other items", "residual": "seed × item", "total": "total"}


def _record(chance: Chance) -> dict[str, object]:
    sources = {name: getattr(chance, name) for name in _SOURCES}
    limit = "neither" if not any(sources.values()) else "test items" if chance.limiting == ITEM else "seeds"
    return {"seeds": chance.seeds, "items": chance.items, **sources, "limited_by": limit}
