"""What the variants wrote: scores by the length of the source, and outputs side by side."""

from __future__ import annotations

import math

from paddle_tfm import units
from paddle_tfm.comparison.report import scores_by_length
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.figures.line_chart import LineChart
from paddle_tfm.comparison.report.outputs import examples, side_by_side
from paddle_tfm.comparison.report.scores_by_length import ScoresByLength
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.finished import directions
from paddle_tfm.language import _
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table


class Outputs(Section):
    """What each variant wrote for the same sources, side by side."""

    heading = "Outputs"
    summary = "what each variant wrote for the same sources"
    place = 400

    def html(self, facts: Facts) -> str:
        """A block for each source: the reference, and below it what each variant wrote."""
        return examples(side_by_side(facts.comparison), facts.numbers)


class Lengths(ChartedSection):
    """The deciding metric, or else the first one of texts, by the length of the source in buckets, a line a variant."""

    heading = "Scores by length"
    summary = "a line a variant, by the length of the source"
    place = 350

    def applies(self, facts: Facts) -> bool:
        """Whether predictions were written, a metric of the recipe is one of texts, and their lengths differ."""
        return facts.once(_by_length) is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        variants = [row.variant for row in facts.comparison.rows]
        title, unit = _("{title}, means over seeds").format(title=_title(facts)), facts.comparison.unit(_metric(facts))
        return {"scores-by-length": scores_by_length.table(_scores(facts), variants, unit, title)}

    def charts(self, facts: Facts) -> dict[str, LineChart]:
        numbers = {row.variant: facts.numbers[row.variant] for row in reversed(facts.comparison.rows)}
        metric = _metric(facts)
        higher = directions(facts.comparison.runs)[units.metric_and_test(metric)[0]]
        unit, mark = facts.comparison.unit(metric), _longest(facts)
        return {"scores-by-length": scores_by_length.chart(_scores(facts), numbers, _title(facts), unit, higher, mark)}

    def notes(self, facts: Facts) -> list[str]:
        """What a point is, and the dashed line."""
        note = _("A point is the mean over seeds at the mean length of its bucket; the band is the range of the seeds.")
        if (longest := _longest(facts)) is not None:
            note += f" The dashed line is at the longest source of the training set, {longest} {_scores(facts).unit}."
        return [note]


def _by_length(facts: Facts) -> ScoresByLength | None:
    """None where there is nothing to show."""
    metric = next(iter(facts.text_metrics().values()), None)
    return None if metric is None else scores_by_length.scores_by_length(facts.predictions, metric)


def _scores(facts: Facts) -> ScoresByLength:
    return facts.once(_by_length) or ScoresByLength("", [], {})


def _metric(facts: Facts) -> str:
    """What the metric is called, with the test whose texts are looked at."""
    test = units.metric_and_test(facts.comparison.metric)[1]
    return next(iter(facts.text_metrics())) + (f"@{test}" if test else "")


def _title(facts: Facts) -> str:
    return f"{facts.comparison.split} {units.metric_name(_metric(facts))}"


def _longest(facts: Facts) -> float | None:
    """The length of the longest source that any run was trained on; None where that is unknown, or nothing longer is
    tested."""
    by_length = _scores(facts)
    known = [(about.get("longest_source") or {}).get(by_length.unit) for about in facts.abouts]
    longest = max((length for length in known if length is not None), default=math.inf)
    return longest if longest < by_length.buckets[-1].length else None
