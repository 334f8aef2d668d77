"""What numbers say: pure functions of numbers, each page with its formulas and sources.

`decide` ties them together: paired values of variants and their baseline → a verdict on each.
"""

from paddle_tfm.comparison.statistics.components import Components, components
from paddle_tfm.comparison.statistics.decide import Verdict, decide
from paddle_tfm.comparison.statistics.groups import Groups, two_groups
from paddle_tfm.comparison.statistics.holm import holm
from paddle_tfm.comparison.statistics.intervals import CONFIDENCE, SIGNIFICANCE, Mean, mean_interval, spread
from paddle_tfm.comparison.statistics.ladder import Slope, slope
from paddle_tfm.comparison.statistics.looks import Listed, Looks
from paddle_tfm.comparison.statistics.outlook import MoreSeeds, more_seeds, smallest_seen
from paddle_tfm.comparison.statistics.signs import worst_value

__all__ = [
    "CONFIDENCE",
    "SIGNIFICANCE",
    "Components",
    "Groups",
    "Listed",
    "Looks",
    "Mean",
    "MoreSeeds",
    "Slope",
    "Verdict",
    "components",
    "decide",
    "holm",
    "mean_interval",
    "more_seeds",
    "slope",
    "smallest_seen",
    "spread",
    "two_groups",
    "worst_value",
]
