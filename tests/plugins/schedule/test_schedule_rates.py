"""Schedules: options that are refused, and trials that end in the warm-up."""

import math

import pytest

from paddle_tfm_plugins.schedule.constant import Constant
from paddle_tfm_plugins.schedule.cosine import Cosine
from paddle_tfm_plugins.schedule.inverse_sqrt import InverseSqrt
from paddle_tfm_plugins.schedule.noam import Noam
from paddle_tfm_plugins.schedule.wsd import WSD


@pytest.mark.parametrize("make", [Cosine, WSD])
def test_a_trial_of_few_steps_may_end_in_the_warmup(make):
    schedule = make(10, peak=0.3, warmup=100)
    values = [schedule(step) for step in range(1, 11)]
    assert all(0 < value <= 0.03 + 1e-12 for value in values) and values[0] == pytest.approx(0.003)


NO_WARMUP = (
    "`warmup` must be positive, as every rate is 0 without, but is 0; 1 decays from the first step on, and the schedules "
    "cosine and wsd take 0"
)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Constant(0.0), "`learning_rate` must be positive, but is 0.0"),
        (lambda: Noam(64, warmup=0), NO_WARMUP),
        (lambda: Noam(64, factor=-1.0), "`factor` must be positive, but is -1.0"),
        (lambda: InverseSqrt(warmup=0), NO_WARMUP),
        (lambda: InverseSqrt(peak=math.nan), "`peak` must be positive, but is nan"),
        (lambda: Cosine(10, warmup=-1), "`warmup` must not be negative, but is -1"),
        (lambda: Cosine(10, peak=0.1, floor=0.2), "`floor` must not be above `peak`, but 0.2 is above 0.1"),
        (lambda: WSD(10, peak=0.0), "`peak` must be positive, but is 0.0"),
        (lambda: WSD(10, decay=1.5), "`decay` must be in [0, 1], but is 1.5"),
        (lambda: WSD(10, floor=-0.1), "`floor` must not be negative, but is -0.1"),
    ],
)
def test_bad_options(make, text):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == text
