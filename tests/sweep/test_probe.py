"""What runs will cost: the arithmetic of a forecast."""

import random

import pytest

from paddle_tfm.sweep.overview import duration
from paddle_tfm.sweep.probe import Probe, seeds_within, steps_within


def probe(step=0.1, start=1.0, evaluation=2.0, test=3.0, steps=100, every=50) -> Probe:
    return Probe("a", 7, steps, every, 10.0, start, step, evaluation, test, None)


def test_a_run_is_its_start_its_steps_its_evaluations_and_its_test():
    """The trainer evaluates before the first step, every `every` steps, and behind the last."""
    assert probe().seconds() == pytest.approx(1 + 100 * 0.1 + 3 * 2 + 3)
    assert probe().seconds(30, tested=False) == pytest.approx(1 + 30 * 0.1 + 2 * 2)  # a trial of tuning
    assert probe(steps=120).seconds() == pytest.approx(1 + 120 * 0.1 + 4 * 2 + 3)


def test_runs_side_by_side_end_as_a_simulated_queue_does():
    draw = random.Random(2)
    for _ in range(50):
        seconds, at_once = [draw.uniform(1, 9) for _ in range(draw.randint(1, 12))], draw.randint(1, 5)
        waiting, free, now = list(seconds), at_once, 0.0
        under_way: list[float] = []
        while waiting or under_way:
            while waiting and free:
                under_way.append(now + waiting.pop(0))
                free -= 1
            now = min(under_way)
            under_way.remove(now)
            free += 1
        assert duration(seconds, at_once) == pytest.approx(now)


def test_what_fits_fits_and_one_more_does_not():
    found = [probe(step=0.1), probe(step=0.2)]
    for at_once in (1, 2, 3):
        for budget in (10.0, 60.0, 200.0):
            number = seeds_within(budget, found, at_once, 12)
            runs = [each.seconds() for each in found]
            assert number == 0 or duration(runs * number, at_once) <= budget
            assert number == 12 or duration(runs * (number + 1), at_once) > budget
    steps = steps_within(80.0, found, 1, 2)
    assert duration([each.seconds(steps) for each in found] * 2, 1) <= 80.0
    assert duration([each.seconds(steps + 1) for each in found] * 2, 1) > 80.0
    assert steps_within(1.0, found, 1, 2) == 0
