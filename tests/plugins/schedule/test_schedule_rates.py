"""Schedules: their formulas written out again, and what must hold of any."""

import math
from itertools import pairwise

import pytest

from paddle_tfm_plugins.schedule.constant import Constant
from paddle_tfm_plugins.schedule.cosine import Cosine
from paddle_tfm_plugins.schedule.inverse_sqrt import InverseSqrt
from paddle_tfm_plugins.schedule.noam import Noam
from paddle_tfm_plugins.schedule.wsd import WSD

STEPS = 1000
ALL = {
    "constant": Constant(0.3),
    "noam": Noam(d_model=64, factor=2.0, warmup=100),
    "inverse_sqrt": InverseSqrt(peak=0.3, warmup=100),
    "cosine": Cosine(STEPS, peak=0.3),
    "cosine warmup": Cosine(STEPS, peak=0.3, warmup=100, floor=0.03),
    "wsd": WSD(STEPS, peak=0.3, warmup=100),
    "wsd floor": WSD(STEPS, peak=0.3, warmup=100, decay=0.5, floor=0.03),
    "wsd no warmup": WSD(STEPS, peak=0.3, warmup=0, decay=0.1),
}
PEAK_AT = {"noam": 100, "inverse_sqrt": 100, "cosine": 1, "cosine warmup": 100, "wsd": 100, "wsd floor": 100}


def rates(name):
    return [ALL[name](step) for step in range(1, STEPS + 1)]


@pytest.mark.parametrize("name", ALL)
def test_every_step_learns(name):
    assert all(0 < rate < math.inf for rate in rates(name))


@pytest.mark.parametrize("name", PEAK_AT)
def test_rises_to_its_peak_and_falls_after_it(name):
    values, top = rates(name), PEAK_AT[name] - 1
    assert all(a < b for a, b in pairwise(values[: top + 1]))
    assert all(a >= b for a, b in pairwise(values[top:]))
    assert values[top] == max(values) > values[-1]


@pytest.mark.parametrize("name", [name for name in PEAK_AT if name != "cosine"])
def test_warmup_is_a_straight_line_through_zero(name):
    values = rates(name)
    for step in range(1, 101):
        assert values[step - 1] == pytest.approx(values[99] * step / 100, rel=1e-12)


def test_constant():
    assert set(rates("constant")) == {0.3}


def test_noam_is_that_of_the_paper():
    noam = Noam(d_model=512)
    for step in (1, 10, 3999, 4000, 4001, 100_000):
        assert noam(step) == pytest.approx(512**-0.5 * min(step**-0.5, step * 4000**-1.5), rel=1e-12)
    assert noam(4000) == pytest.approx(6.9877e-4, rel=1e-4)  # the known peak of the base model
    assert Noam(d_model=512, factor=2.0)(7) == pytest.approx(2 * noam(7), rel=1e-12)


def test_inverse_sqrt_is_noam_with_a_stated_peak():
    noam = Noam(d_model=64, warmup=100)
    other = InverseSqrt(peak=noam(100), warmup=100)
    assert all(other(step) == pytest.approx(noam(step), rel=1e-12) for step in range(1, STEPS))
    assert other(400) == pytest.approx(noam(100) / 2, rel=1e-12)
    assert InverseSqrt(peak=0.3, warmup=1)(9) == pytest.approx(0.1, rel=1e-12)  # without: 0.3 / sqrt(step)


def test_cosine():
    schedule = ALL["cosine warmup"]
    assert schedule(100) == pytest.approx(0.3, rel=1e-12)
    for step in (100, 333, 999, 1000):
        angle = math.pi * (step - 100) / 901
        assert schedule(step) == pytest.approx(0.03 + 0.27 * 0.5 * (1 + math.cos(angle)), rel=1e-9)
    assert schedule(1001) == schedule(5000) == pytest.approx(0.03, rel=1e-12)
    assert ALL["cosine"](1) == 0.3
    assert Cosine(1, peak=0.3)(1) == 0.3


def test_wsd():
    schedule = ALL["wsd floor"]
    assert [schedule(step) for step in (100, 101, 300, 500)] == [0.3] * 4
    for step in (501, 750, 1000):
        assert schedule(step) == pytest.approx(0.03 + 0.27 * (1001 - step) / 501, rel=1e-12)
    assert schedule(1001) == schedule(5000) == pytest.approx(0.03, rel=1e-12)
    assert ALL["wsd"](900) == 0.3 > ALL["wsd"](901)  # a tenth of the steps, unless told otherwise
    assert ALL["wsd no warmup"](1) == 0.3
    assert 0 < WSD(1, peak=0.3)(1) <= 0.3


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
