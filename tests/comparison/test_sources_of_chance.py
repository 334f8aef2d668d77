"""What test items add to the chance in a difference: beside the bootstrap, and where there is nothing to say."""

import numpy as np
import pytest

from paddle_tfm.comparison.bootstrap import resampled_values
from paddle_tfm.comparison.report.sections.chance import MAX_GROUPS, chance, pseudo_values
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm_plugins.metric.bleu import Bleu
from paddle_tfm_plugins.metric.exact_match import ExactMatch

WORDS = "the a man woman dog is on in red street walks runs two children play ball"


class Mean(Metric):
    """The mean of the numbers that the hypotheses are."""

    def statistics(self, predictions):
        return np.array([(float(item.hypothesis), 1.0) for item in predictions])

    def value(self, total):
        return total[0] / total[1]


def zeros(seeds, items):
    return {seed: [Prediction(str(i), str(i), "0") for i in range(items)] for seed in range(1, seeds + 1)}


def captions(rng, right, size):
    """References of some words, and hypotheses of which a share `right` of the words is kept."""
    rows = []
    for _ in range(size):
        words = rng.choice(WORDS.split(), rng.integers(4, 14)).tolist()
        kept = [word if rng.random() < right else str(rng.choice(WORDS.split())) for word in words]
        rows.append(Prediction(" ".join(words), " ".join(words), " ".join(kept)))
    return rows


@pytest.mark.reliability
@pytest.mark.parametrize(("metric", "size"), [(Bleu(), 250), (ExactMatch(), 250), (Bleu(), 3 * MAX_GROUPS)])
def test_items_move_a_difference_as_far_as_the_bootstrap_says(metric, size):
    rng = np.random.default_rng(7)
    one = captions(rng, 0.9, size)
    # A tenth of the outputs is another one, all of these at the end of the test set.
    other = [*one[: -size // 10], *(item._replace(hypothesis=item.reference) for item in one[-size // 10 :])]
    # Two seeds that write the same: all the chance is the items'.
    found = chance(metric, {1: other, 2: other}, {1: one, 2: one})
    values = resampled_values(metric, (one, other), 4000)
    assert found.of_items**0.5 == pytest.approx((values[:, 1] - values[:, 0]).std(), rel=0.12)
    assert (found.of_seeds, found.residual, found.limited_by) == (0, pytest.approx(0, abs=1e-12), "test items")
    assert found.items == size


def test_pseudo_values_of_a_mean_are_its_items():
    rows = [Prediction(str(i), "1", "1" if i % 3 else "0") for i in range(50)]
    values = pseudo_values(ExactMatch(), rows)
    assert sorted(values) == pytest.approx(sorted(ExactMatch().statistics(rows)[:, 0]))


def test_where_there_is_nothing_to_compare_nothing_is_said():
    rows = zeros(3, 20)
    assert chance(Mean(), {1: rows[1]}, {1: rows[1]}) is None  # one pair
    assert chance(Mean(), {1: rows[1], 2: rows[2]}, {3: rows[3]}) is None  # none
    assert chance(Mean(), {1: rows[1], 2: rows[2][:-1]}, rows) is None  # other texts
    other = [rows[2][0]._replace(reference="other"), *rows[2][1:]]
    assert chance(Mean(), rows, rows) and chance(Mean(), {**rows, 2: other}, rows) is None  # as many

    class Longest(Metric):
        """A function of all predictions at once."""

        def compute(self, predictions, likelihood):
            return float(max(len(item.hypothesis) for item in predictions))

    assert chance(Longest(), rows, rows) is None
