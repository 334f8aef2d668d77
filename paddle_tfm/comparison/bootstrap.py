"""Paired bootstrap resampling: whether a test set suffices to tell two systems apart (Koehn 2004,
aclanthology.org/W04-3250).

The test set is drawn again, with replacement, thousands of times, both systems are scored on each draw, and it is
counted how often their order turns. That says how far another test set of such examples could move the difference. It
says nothing of how far another training could: one run is one sample of its variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from paddle_tfm.comparison.statistics import CONFIDENCE, SIGNIFICANCE
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.protocols.metric import NO_LIKELIHOOD

DRAWS = 10_000
SLOW_DRAWS = 200  # at most, for a metric without statistics: it is computed from the texts on each draw
SEED = 12345
MAX_COUNTS = 4_000_000  # in memory at a time


@dataclass(frozen=True)
class Resampled:
    """A metric of two systems on one test set.

    difference = other − baseline; what its draws say (`low`, `high`, `p`, `verdict`) is defined by
    `resampled_difference`.
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
    name: str, metric: Metric, baseline: Sequence[Prediction], other: Sequence[Prediction], draws: int = DRAWS
) -> Resampled:
    """Compare two systems' predictions of the same examples, in the same order."""
    first, second = (float(metric.compute(system, NO_LIKELIHOOD)) for system in (baseline, other))
    values = resampled_values(metric, (baseline, other), draws)
    low, high, p, verdict = resampled_difference(values[:, 1] - values[:, 0], metric.higher_is_better)
    signature = metric.signature(len(baseline[0].references))
    return Resampled(name, first, second, second - first, low, high, p, len(values), verdict, signature)


def resampled_values(metric: Metric, systems: Sequence[Sequence[Prediction]], draws: int = DRAWS) -> np.ndarray:
    """float64 [draws, systems]: the metric of each system on each draw, the same draws for all systems and metrics."""
    size = len(systems[0])
    if type(metric).statistics is Metric.statistics:
        single_draws = (row for block in _draw_counts(size, draws) for row in block)
        rows = (np.repeat(np.arange(size), counts).tolist() for counts in islice(single_draws, SLOW_DRAWS))
        return np.array(
            [[metric.compute([system[i] for i in row], NO_LIKELIHOOD) for system in systems] for row in rows]
        )
    tables = [metric.statistics(system) for system in systems]  # [N, K]
    blocks = []
    for counts in _draw_counts(size, draws):
        totals = (counts.astype(np.float64) @ table for table in tables)
        blocks.append(np.array([[metric.value(total) for total in rows] for rows in totals]).T)
    return np.concatenate(blocks)


def _draw_counts(size: int, draws: int) -> Iterator[np.ndarray]:
    """How often each of `size` examples is in each of `draws` draws of `size` with replacement, int64 [some draws,
    size] at a time."""
    generator = np.random.default_rng(SEED)
    rows = max(1, MAX_COUNTS // size)
    for start in range(0, draws, rows):
        yield generator.multinomial(size, np.full(size, 1 / size), min(rows, draws - start))


def resampled_difference(differences: np.ndarray, higher_is_better: bool) -> tuple[float, float, float, str]:
    """What the differences d [n] of n draws of the test set say: their quantiles 2.5% and 97.5%,

        p = min(1, 2 · (1 + min(#{d ≤ 0}, #{d ≥ 0})) / (1 + n)),

    twice the share of draws in which the systems are even or in the other order: two-sided, for neither was expected to
    be better. Koehn counts the draws that one system wins; the ones added keep p from being 0, which no finite number
    of draws can show (Davison and Hinkley 1997, section 4.2). And the verdict: `better` or `worse` where p < 5%,
    `equal` where no draw tells the two apart, and else `undetermined`.
    """
    low, high = np.quantile(differences, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    other_order = min((differences <= 0).sum(), (differences >= 0).sum())
    p = min(1.0, 2 * (1 + int(other_order)) / (1 + len(differences)))
    if not differences.any():
        verdict = "equal"
    elif p >= SIGNIFICANCE:
        verdict = "undetermined"
    else:
        verdict = "better" if (np.median(differences) > 0) == higher_is_better else "worse"
    return low, high, p, verdict


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
