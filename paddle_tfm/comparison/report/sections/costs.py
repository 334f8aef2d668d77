"""Quality against what it costs: parameters, tokens, time and memory of training, time of decoding."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from paddle_tfm.comparison.columns import metric
from paddle_tfm.comparison.gaps import Confound, confounds
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.table import Row
from paddle_tfm.language import _
from paddle_tfm.tabular import Column, Table, column
from paddle_tfm.units import clock


def _mebibytes(value: float) -> str:
    return f"{value:,.3g} MiB" if value < 100 else f"{value:,.0f} MiB"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.3g} ms a token"


COSTS: dict[str, tuple[str, Callable[[float], str]]] = {  # of `gaps.COSTS`: its name, and a value as text
    "parameters": ("parameters", "{:,.0f}".format),
    "flops_per_token": ("operations", "{:,.0f} a token".format),
    "tokens": ("tokens", "{:,.0f}".format),
    "seconds": ("time", clock),
    "peak_memory_mib": ("memory", _mebibytes),
    "decoding_seconds": ("decoding", _milliseconds),
    "cache_bytes": ("cache", "{:,.0f} bytes".format),
}
DECODING = "Decoding is that of the test split, all seeds; it depends on how long outputs are."
ALWAYS = ("parameters", "seconds")  # others are shown where variants differ in them


class Costs(ChartedSection):
    """Each variant's score beside its size, and the time and memory of its training: what is better may only be
    larger."""

    heading = "Quality and cost"
    summary = "score beside parameters, time and memory"
    place = 220

    def applies(self, facts: Facts) -> bool:
        return len(facts.comparison.rows) > 1

    def notes(self, facts: Facts) -> list[str]:
        """What a difference of scores may be owed to, as `compare` of two runs says it."""
        end = _("{sentence}.")  # not from `once`, which may have been asked for another language
        owed = [
            end.format(sentence=f"{name}: {_('; ').join(cost.sentence for cost in costs)}")
            for name, costs in _owed(facts).items()
        ]
        return [*owed, *([_(DECODING)] if "decoding_seconds" in _known(facts) else [])]

    def tables(self, facts: Facts) -> dict[str, Table]:
        first = [column("variant", of=lambda row: row.variant), metric(facts.comparison, facts.comparison.metric)]
        columns = [*first, *(_column(facts, cost) for cost in _known(facts))]
        title = _("What each variant costs, a mean over seeds; time of training steps")
        return {"costs": Table(columns, facts.comparison.rows, title)}

    def data(self, facts: Facts) -> dict[str, list[dict[str, object]]]:
        """The costs of each variant that are not the baseline's."""
        return {name: [cost._asdict() for cost in costs] for name, costs in facts.once(_owed).items()}


def _owed(facts: Facts) -> dict[str, list[Confound]]:
    """Variant → the costs in which it differs from the baseline, of those that differ in any."""
    base, *others = facts.sides()
    owed = {side.name: list(confounds(base, side)) for side in others}
    return {name: costs for name, costs in owed.items() if costs}


def _known(facts: Facts) -> list[str]:
    """The costs that are known of every variant, and always shown or not the same for all."""
    shown = {*ALWAYS, *(cost.what for costs in facts.once(_owed).values() for cost in costs)}
    return [cost for cost in COSTS if cost in shown and all(cost in side.costs for side in facts.sides())]


def _column(facts: Facts, cost: str) -> Column[Row]:
    means = {side.name: fmean(side.costs[cost].values()) for side in facts.sides()}
    text = COSTS[cost][1]
    return column(cost, _(COSTS[cost][0]), text, right=True, of=lambda row: means[row.variant])
