"""What runs will cost: the arithmetic of a forecast."""

import random

import pytest

from paddle_tfm.sweep.overview import duration
from paddle_tfm.sweep.probe import Probe


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
