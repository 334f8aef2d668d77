"""Schedules: trials that end in the warm-up."""

import pytest

from paddle_tfm_plugins.schedule.cosine import Cosine
from paddle_tfm_plugins.schedule.wsd import WSD


@pytest.mark.parametrize("make", [Cosine, WSD])
def test_a_trial_of_few_steps_may_end_in_the_warmup(make):
    schedule = make(10, peak=0.3, warmup=100)
    values = [schedule(step) for step in range(1, 11)]
    assert all(0 < value <= 0.03 + 1e-12 for value in values) and values[0] == pytest.approx(0.003)
