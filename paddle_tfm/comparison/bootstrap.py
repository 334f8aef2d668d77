"""Paired bootstrap resampling: whether a test set suffices to tell two systems apart (Koehn 2004,
aclanthology.org/W04-3250).

The test set is drawn again, with replacement, thousands of times, both systems are scored on each draw, and it is
counted how often their order turns. That says how far another test set of such examples could move the difference. It
says nothing of how far another training could: one run is one sample of its variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from paddle_tfm.comparison.statistics import draw_counts, resampled_difference
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.protocols.metric import NO_LIKELIHOOD

DRAWS = 10_000
SLOW_DRAWS = 200  # at most, for a metric without statistics: it is computed from the texts on each draw
SEED = 12345


@dataclass(frozen=True)
class Resampled:
    """A metric of two systems on one test set.

    difference = other − baseline; what its draws say (`low`, `high`, `p`, `verdict`) is defined by
    `ResampledDifference`.
    """

    metric: str
    baseline: float
    other: float
    difference: float
    low: float
    high: float
    p: float
    draws: int
    verdict: str
    signature: str


def paired_bootstrap(
    name: str,
    metric: Metric,
    baseline: Sequence[Prediction],
    other: Sequence[Prediction],
    draws: int = DRAWS,
    seed: int = SEED,
) -> Resampled:
    """Compare two systems' predictions of the same examples, in the same order.

    Raises:
        ValueError: there is no example, or one has more than the other.
    """
    if not baseline or len(baseline) != len(other):
        text = _("both systems need the same examples, but they have {number} and {others}")
        raise ValueError(text.format(number=len(baseline), others=len(other)))
    first, second = (float(metric.compute(system, NO_LIKELIHOOD)) for system in (baseline, other))
    values = resampled_values(metric, (baseline, other), draws, seed)
    spread = resampled_difference(values[:, 1] - values[:, 0], metric.higher_is_better)
    ends = spread.low, spread.high, spread.p, len(values), spread.verdict
    return Resampled(name, first, second, second - first, *ends, metric.signature(len(baseline[0].references)))


def resampled_values(
    metric: Metric, systems: Sequence[Sequence[Prediction]], draws: int = DRAWS, seed: int = SEED
) -> np.ndarray:
    """float64 [draws, systems]: the metric of each system on each draw, the same draws for all systems and metrics."""
    size = len(systems[0])
    if type(metric).statistics is Metric.statistics:
        single_draws = (row for block in draw_counts(size, draws, seed) for row in block)
        rows = (np.repeat(np.arange(size), counts).tolist() for counts in islice(single_draws, SLOW_DRAWS))
        return np.array(
            [[metric.compute([system[i] for i in row], NO_LIKELIHOOD) for system in systems] for row in rows]
        )
    tables = [metric.statistics(system) for system in systems]  # [N, K]
    blocks = []
    for counts in draw_counts(size, draws, seed):
        totals = (counts.astype(np.float64) @ table for table in tables)
        blocks.append(np.array([[metric.value(total) for total in rows] for rows in totals]).T)
    return np.concatenate(blocks)


def require_same_examples(baseline: Sequence[Prediction], other: Sequence[Prediction], names: tuple[str, str]) -> None:
    """Sources and references must be the same, in the same order.

    Raises:
        UserError: they are not.
    """
    one, two = names
    if len(baseline) != len(other):
        text = _("{one} has {number:,} predictions and {two} has {others:,}: not the same test set")
        raise UserError(text.format(one=one, number=len(baseline), two=two, others=len(other)))
    for number, (first, second) in enumerate(zip(baseline, other), 1):
        texts = [{"source": each.source, "reference": " | ".join(each.references)} for each in (first, second)]
        for what, ours in texts[0].items():
            if ours != (theirs := texts[1][what]):
                text = _(
                    "{one} and {two} are not of the same test set: the {what} of example {number:,} is {ours!r} in "
                    "the one and {theirs!r} in the other"
                )
                raise UserError(
                    text.format(one=one, two=two, what=_(what), number=number, ours=ours[:60], theirs=theirs[:60])
                )
