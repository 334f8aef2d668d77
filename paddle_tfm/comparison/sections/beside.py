"""What differs between variants beside their settings, and what a difference of scores may be owed to."""

from __future__ import annotations

from collections.abc import Iterator

from paddle_tfm.comparison import describe
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.sides import SETTINGS, Confound, Gap, confounds, gaps
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column


class Beside(Section):
    """Versions, texts, machines, parameters, tokens, time and memory in which variants differ from the baseline."""

    heading = "Beside the variants"
    place = 250

    def applies(self, facts: Facts) -> bool:
        """Whether anything differs beside settings."""
        return any(_differing(facts))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each thing in which a variant is not like the baseline."""
        rows = []
        for variant, item in _differing(facts):
            if isinstance(item, Gap):
                texts = f"{item.section}: {item.what}", describe.component(item.one), describe.component(item.other)
            else:
                texts = item.sentence, _number(item.one), _number(item.other)
            rows.append({"variant": variant, **dict(zip(("what", "baseline", "here"), texts))})
        title = "What differs from the baseline beside settings, and may be what a difference of scores is owed to"
        return {"beside": Table([column(key) for key in ("variant", "what", "baseline", "here")], rows, title)}

    def data(self, facts: Facts) -> dict[str, list[dict[str, object]]]:
        """The costs of each variant beside the baseline's."""
        costs: dict[str, list[dict[str, object]]] = {}
        for variant, item in _differing(facts):
            if isinstance(item, Confound):
                costs.setdefault(variant, []).append(item._asdict())
        return costs


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _differing(facts: Facts) -> Iterator[tuple[str, Gap | Confound]]:
    """Of each variant what is not the baseline's, as `paddle-tfm diff` says it; settings are in the section before."""
    base, *others = facts.sides()
    for side in others:
        yield from ((side.name, gap) for gap in gaps(base, side) if gap.section != SETTINGS)
        yield from ((side.name, cost) for cost in confounds(base, side))
