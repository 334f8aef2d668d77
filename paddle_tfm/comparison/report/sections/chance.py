"""Where the chance in each difference comes from: seeds, or the items of the test set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.statistics import Components, components
from paddle_tfm.language import _
from paddle_tfm.predictions import of_same_texts
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.tabular import Table, column

MAX_GROUPS = 400  # of test items that are left out together
ORDER = 20151  # seed of the order in which items are grouped: the same for all runs, whose items are compared in pairs
SOURCES = {"of_seeds": "other seeds", "of_items": "other items", "residual": "seed × item", "total": "total"}

Predictions = Mapping[int, Sequence[Prediction]]  # seed → of the same examples, in the same order


def chance(metric: Metric, variant: Predictions, baseline: Predictions) -> Components | None:
    """The chance in the mean difference of two variants, paired by seed and by test item. None where there are fewer
    than two pairs or two items, where two runs are not of the same texts, or where the metric is no function of sums
    over predictions.

    A metric such as BLEU is no mean over items. Its jackknife pseudo-values take their place (Tukey 1958; Efron and
    Tibshirani 1993, chapter 11): with v the value on all items and v₋ᵢ that without item i of n, n v − (n − 1) v₋ᵢ.
    Of a mean they are the items' own values. The table of their differences, [seeds, items], is taken apart by
    `components`.
    """
    seeds = sorted(variant.keys() & baseline.keys())
    runs = [side[seed] for side in (variant, baseline) for seed in seeds]
    if len(seeds) < 2 or len(runs[0]) < 2 or type(metric).statistics is Metric.statistics:
        return None
    if len(of_same_texts(dict(enumerate(runs)))) < len(runs):
        return None
    try:
        values = np.array([pseudo_values(metric, run) for run in runs])
    except ValueError:  # without some items there is nothing to measure
        return None
    return components(values[: len(seeds)] - values[len(seeds) :])._replace(items=len(runs[0]))


def pseudo_values(metric: Metric, predictions: Sequence[Prediction]) -> np.ndarray:
    """float64 [G]: the jackknife pseudo-values of single items, or, of more than `MAX_GROUPS` items, of that many
    random groups of about one size. Their mean is the metric, but for what it is no linear function of.

    Raises:
        ValueError: without some items there is nothing to measure.
    """
    rows = metric.statistics(predictions)
    number = min(len(rows), MAX_GROUPS)
    order = np.random.default_rng(ORDER).permutation(len(rows))
    sums = np.array([rows[group].sum(0) for group in np.array_split(order, number)])
    total = rows.sum(0)
    without = np.array([metric.value(total - group) for group in sums])
    return number * metric.value(total) - (number - 1) * without


class Chances(ChartedSection):
    """The standard deviation that other seeds, and other test items, give to each difference."""

    heading = "Where the chance comes from"
    summary = "how much other seeds and other test items would change each difference"
    place = 130

    def applies(self, facts: Facts) -> bool:
        """Whether there are two pairs of runs of some variant with predictions of the same texts, by a metric of
        them."""
        return bool(facts.once(_chances))

    def tables(self, facts: Facts) -> dict[str, Table]:
        comparison = facts.comparison
        unit = comparison.unit(comparison.metric)

        def spread(value: float) -> str:
            return units.difference(value, unit, value).removeprefix("+")

        rows = [{"variant": variant, **numbers} for variant, numbers in self.data(facts).items()]
        columns = [
            column("variant"),
            column("seeds", right=True),
            column("items", "test items", "{:,}".format, right=True),
            *(column(name, _(SOURCES[name]), spread, right=True) for name in SOURCES),
            column("limited_by", "limited by"),
        ]
        metric = f"{_(comparison.split)} {units.metric_name(comparison.metric)}"
        title = _("Chance in the mean difference of {metric} to {baseline}, standard deviations")
        title = title.format(metric=metric, baseline=comparison.baseline)
        return {"chance": Table(columns, rows, title)}

    def notes(self, facts: Facts) -> list[str]:
        return [
            _(
                "Each number is one standard deviation of the mean difference to the baseline. The intervals of "
                "this page cover other seeds on these test items; “other items” shows how far another test set "
                "could move the difference. More seeds shrink “other seeds”, and only a larger test set shrinks "
                "“other items”. “Seed × item” is the rest: items on which seeds disagree. Both shrink it."
            )
        ]

    def data(self, facts: Facts) -> dict[str, dict[str, object]]:

        def record(item: Components) -> dict[str, object]:
            sources = {name: math.sqrt(getattr(item, name)) for name in SOURCES}
            return {"seeds": item.seeds, "items": item.items, **sources, "limited_by": item.limited_by}

        return {variant: record(item) for variant, item in facts.once(_chances).items()}


def _chances(facts: Facts) -> dict[str, Components]:
    """variant → where the chance in its difference to the baseline comes from; of those that can be compared, by the
    deciding metric, where there are predictions."""
    metric, base = facts.text_metrics().get(facts.comparison.learned), facts.predictions.get(facts.baseline)
    if metric is None or base is None:
        return {}
    compared = [row.variant for row in facts.comparison.comparable if row.variant != facts.baseline]
    chances = {variant: chance(metric, facts.predictions.get(variant, {}), base) for variant in compared}
    return {variant: item for variant, item in chances.items() if item is not None}
