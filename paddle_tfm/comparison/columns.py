"""The columns of the table: what stands over them, what a row holds, and what they mean, as plain text."""

from __future__ import annotations

from paddle_tfm import units
from paddle_tfm.comparison.runs import directions
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import change, smallest, verdict_text
from paddle_tfm.units import listed, plural

SPREAD = "“±” is the standard deviation (n − 1) over seeds: how far single runs scatter. One seed has none."
FACTS = (
    "Tokens are target tokens of training, per second; the time is one run's training. Diverged runs are in no mean."
)
DIVERGED = "In the ranking a run that diverged has the worst value that the metric has, or that is here."


def header(comparison: Comparison) -> list[str]:
    """The names of the columns of the whole table, an arrow beside each metric: ↑ where higher is better."""
    metrics = [heading(comparison, name) for name in comparison.shown()]
    return ["variant", "seeds", metrics[0], "difference", *metrics[1:], "parameters", "tokens/s", "time", "diverged"]


def cells(comparison: Comparison, row: Row) -> list[str]:
    """What `header` announces, as plain text."""
    metrics = [around(comparison, name, row) for name in comparison.shown()]
    if row.variant == comparison.baseline:
        against = "baseline" if len(comparison.rows) > 1 else "–"
    else:
        difference = row.difference
        words = difference and f"{change(comparison, difference)} {verdict_text(comparison, difference)}"
        against = words or incomparable(comparison, row)
    facts = f"{row.parameters:,}", f"{row.tokens_per_second:,.0f}", clock(row.seconds), lost(row)
    return [row.variant, seeds(row), metrics[0], against, *metrics[1:], *facts]


def around(comparison: Comparison, name: str, row: Row) -> str:
    """`mean ± spread` of a variant's metric, both to the same digit; the mean alone where there is no spread."""
    return units.plus_minus(row.mean.get(name), row.spread.get(name), comparison.unit(name))


def notes(comparison: Comparison) -> list[str]:
    """What the columns mean, and what must stand beside a score for others to compare theirs with it."""
    diverged = [DIVERGED] if any(row.diverged for row in comparison.rows) else []
    signatures = (f"{units.metric_name(name)}: {text}" for name, text in comparison.signatures.items())
    return [SPREAD, method(comparison), FACTS, *diverged, *signatures]


def method(comparison: Comparison) -> str:
    """How a verdict comes about, in a few sentences."""
    text = (
        f"The difference is to the baseline, paired by seed, with its {CONFIDENCE:.0%} interval (Student's t"
        f"{adjustment(comparison)}); it is called better or worse only where the interval excludes 0."
    )
    if comparison.question.smallest_effect is not None:
        text += f" “Within ±{smallest(comparison)}”: the interval lies there, and a smaller difference does not matter."
    differences = [row.difference for row in comparison.rows if row.difference]
    if any(difference.diverged or difference.baseline_diverged for difference in differences):
        text += " A run that diverged loses its pair: the difference is then the median, and the test that of signs."
    return text


def how_many_seeds(comparison: Comparison) -> str:
    """`5 seeds`, or `3 to 5 seeds` where variants were settled by fewer."""
    counts = [len(row.seeds) for row in comparison.rows]
    low, high = min(counts), max(counts)
    return plural(high, "seed") if low == high else f"{low} to {high} seeds"


def adjustment(comparison: Comparison) -> str:
    """What intervals are adjusted for: `, adjusted for 3 variants (Holm) and looks after 3, 5 and 8 seeds`."""
    differences, plan = [row.difference for row in comparison.rows if row.difference], comparison.question.plan
    reasons = [f"{len(differences)} variants (Holm)"] if len(differences) > 1 else []
    if plan is not None:
        reasons.append(f"looks after {listed(plan.looks)} seeds" if plan.looks else "looks after every seed (e-values)")
    elif earlier := sorted({look for each in differences for look in each.looks if look < each.pairs}):
        reasons.append(f"looks after {listed(earlier)} seeds")
    elif any(each.looks for each in differences):
        reasons.append("seeds that may be added")
    return f", adjusted for {' and '.join(reasons)}" if reasons else ""


def clock(seconds: float) -> str:
    """Minutes and seconds: 1:05."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


def seeds(row: Row) -> str:
    """Each seed, or how many they are."""
    return ", ".join(map(str, row.seeds)) if len(row.seeds) <= 5 else f"{len(row.seeds)} seeds"


def lost(row: Row) -> str:
    """How many of a variant's runs diverged."""
    return f"{row.diverged} of {len(row.seeds)}" if row.diverged else "0"


def incomparable(comparison: Comparison, row: Row) -> str:
    """Why a variant has no difference to the baseline."""
    obstacle = comparison.obstacles.get(row.variant)
    return obstacle.words if obstacle else "no finished seed in common"


def heading(comparison: Comparison, name: str) -> str:
    """A metric's name with an arrow: ↑ where higher is better."""
    arrows = {True: "\u00a0↑", False: "\u00a0↓", None: ""}
    higher = directions(comparison.runs).get(units.metric_and_test(name)[0])
    return f"{units.metric_name(name)}{arrows[higher]}"
