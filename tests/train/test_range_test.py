"""The learning-rate range test."""

import itertools
import math

import pytest

from paddle_tfm.train.range_test import Point, range_test, suggestion


def test_rates_rise_by_the_same_factor_and_nothing_is_written(make_trainer):
    trainer = make_trainer()
    points = list(range_test(trainer, 1e-6, 1e-2, 9))
    rates = [point.rate for point in points]
    assert rates[0] == pytest.approx(1e-6) and rates[-1] == pytest.approx(1e-2)
    factors = [b / a for a, b in itertools.pairwise(rates)]
    assert factors == pytest.approx([10**0.5] * 8)
    assert not trainer.run.folder.exists()


def test_the_loss_is_a_corrected_running_mean(make_trainer):
    trainer = make_trainer()
    metrics, step = [], trainer.step

    def recorded(number, batches):
        metrics.append(step(number, batches))
        return metrics[-1]

    recorded.settings, recorded.parameters = step.settings, step.parameters
    trainer.step = recorded
    points = list(range_test(trainer, 1e-6, 1e-3, 10))
    assert points[0].loss == pytest.approx(metrics[0].loss)
    weights = [0.1 * 0.9 ** (9 - i) for i in range(10)]
    mean = sum(w * each.loss for w, each in zip(weights, metrics)) / sum(weights)
    assert points[-1].loss == pytest.approx(mean)


def test_it_ends_when_the_loss_runs_away(make_trainer):
    points = list(range_test(make_trainer(), 1e-3, 1e6, 60))
    assert 10 < len(points) < 60
    assert points[-1].loss > 1.25 * points[0].loss and math.isfinite(points[-1].loss)
    assert all(point.loss <= 1.25 * points[0].loss for point in points[:-1])
    best = suggestion(points)
    assert best is not None and 1e-3 < best < points[-1].rate / 5


def test_the_suggestion_is_a_tenth_of_the_best_rate():
    assert suggestion([Point(0.1, 3.0), Point(1.0, 1.0), Point(10.0, 2.0)]) == pytest.approx(0.1)
    assert suggestion([Point(0.1, 3.0), Point(1.0, 4.0)]) is None
    assert suggestion([Point(0.1, 4.0), Point(1.0, 3.0)]) is None, "it was still falling"
    assert suggestion([]) is None
