"""Paired bootstrap resampling: whether a test set suffices to tell two systems apart (Koehn 2004, aclanthology.org/W04-3250).

The test set is drawn anew, with replacement, thousands of times, both systems are scored on each draw, and it is looked at
how often their order turns. That says how far another test set of such examples could move the difference. It says nothing
of how far another training could: one run is one sample of its variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from paddle_tfm.comparison.table import CONFIDENCE
from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.train.evaluate import NO_LIKELIHOOD

DRAWS = 10_000
SLOW_DRAWS = 200  # at most, for a metric without statistics: it is computed from the texts on each draw
SEED = 12345
AT_ONCE = 4_000_000  # counts in memory


@dataclass(frozen=True)
class Resampled:
    """A metric of two systems on one test set.

    difference = other − baseline; `low` and `high` are the ends of its 95% interval, the quantiles 2.5% and 97.5% of the
    differences d of all draws. With n draws,

        p = min(1, 2 · (1 + min(#{d ≤ 0}, #{d ≥ 0})) / (1 + n)),

    twice the share of draws in which the systems are even or in the other order: two-sided, for neither was expected to
    be better. Koehn counts the draws that one system wins; the ones added keep p from being 0, which no finite number of
    draws can show (Davison and Hinkley 1997, section 4.2). The verdict is `better` or `worse` where p < 5%, `equal` where
    no draw tells the two apart, and else `undetermined`.
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
        raise ValueError(f"both systems need the same examples, but they have {len(baseline)} and {len(other)}")
    first, second = (float(metric.compute(system, NO_LIKELIHOOD)) for system in (baseline, other))
    values = resampled_values(metric, (baseline, other), draws, seed)
    found = values[:, 1] - values[:, 0]
    low, high = np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    turned = min((found <= 0).sum(), (found >= 0).sum())
    p = min(1.0, 2 * (1 + int(turned)) / (1 + len(found)))
    if not found.any():
        verdict = "equal"
    elif p >= 1 - CONFIDENCE:
        verdict = "undetermined"
    else:
        verdict = "better" if (np.median(found) > 0) == metric.higher_is_better else "worse"
    return Resampled(name, first, second, second - first, low, high, p, len(found), verdict, metric.signature())


def resampled_values(
    metric: Metric, systems: Sequence[Sequence[Prediction]], draws: int = DRAWS, seed: int = SEED
) -> np.ndarray:
    """float64 [draws, systems]: the metric of each system on each draw, the same draws for all systems and metrics."""
    size = len(systems[0])
    if type(metric).statistics is Metric.statistics:
        counts = (row for block in _counts(size, draws, seed) for row in block)
        rows = (np.repeat(np.arange(size), count) for count in islice(counts, SLOW_DRAWS))
        return np.array([[metric.compute([each[i] for i in row], NO_LIKELIHOOD) for each in systems] for row in rows])
    tables = [metric.statistics(each) for each in systems]  # [N, K]
    blocks = []
    for counts in _counts(size, draws, seed):
        totals = (counts.astype(np.float64) @ table for table in tables)
        blocks.append(np.array([[metric.value(total) for total in each] for each in totals]).T)
    return np.concatenate(blocks)


def _counts(size: int, draws: int, seed: int) -> Iterator[np.ndarray]:
    """How often each example is in each draw, int64 [some draws, size] at a time."""
    generator = np.random.default_rng(seed)
    at_once = max(1, AT_ONCE // size)
    for done in range(0, draws, at_once):
        yield generator.multinomial(size, np.full(size, 1 / size), min(at_once, draws - done))


def require_same_examples(baseline: Sequence[Prediction], other: Sequence[Prediction], names: tuple[str, str]) -> None:
    """Sources and references must be the same, in the same order.

    Raises:
        UserError: they are not.
    """
    one, two = names
    if len(baseline) != len(other):
        raise UserError(f"{one} has {len(baseline):,} predictions and {two} has {len(other):,}: not the same test set")
    for number, (first, second) in enumerate(zip(baseline, other), 1):
        for what in ("source", "reference"):
            ours, theirs = getattr(first, what), getattr(second, what)
            if ours != theirs:
                raise UserError(
                    f"{one} and {two} are not of the same test set: the {what} of example {number:,} is {ours[:60]!r} in "
                    f"the one and {theirs[:60]!r} in the other"
                )
