"""The columns of the table: what stands over them, what a row holds, and what they mean, as plain text."""

from __future__ import annotations

from paddle_tfm import units
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import change

METHOD = (
    f"The difference is to the baseline, paired by seed, with its {CONFIDENCE:.0%} interval (Student's t); it is "
    "called better or worse only where the interval excludes 0. Intervals are not widened for many variants."
)
NOTES = (
    "“±” is the standard deviation (n − 1) over seeds: how far single runs scatter. One seed has none.",
    METHOD,
    "Tokens are target tokens of training, per second; the time is one run's training. Diverged runs are in no mean.",
)


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
        apart = incomparable(comparison, row)
        against = f"{change(comparison, difference)} {difference.verdict}" if difference else apart
    facts = f"{row.parameters:,}", f"{row.tokens_per_second:,.0f}", clock(row.seconds), lost(row)
    return [row.variant, seeds(row), metrics[0], against, *metrics[1:], *facts]


def around(comparison: Comparison, name: str, row: Row) -> str:
    """`mean ± spread` of a variant's metric, both to the same digit; the mean alone where there is no spread."""
    return units.plus_minus(row.mean.get(name), row.spread.get(name), comparison.unit(name))


def notes(comparison: Comparison) -> list[str]:
    """What the columns mean, and what must stand beside a score for others to compare theirs with it."""
    return [*NOTES, *(f"{units.metric_name(name)}: {text}" for name, text in comparison.signatures.items())]


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
    directions = {"loss": False}
    for run in comparison.runs:
        directions |= run.results["directions"]
    arrows = {True: "\u00a0↑", False: "\u00a0↓", None: ""}
    return f"{units.metric_name(name)}{arrows[directions.get(name)]}"
