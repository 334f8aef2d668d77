"""One way of writing a number, for the terminal, the report, the figure and the progress lines."""

import math

import pytest

from paddle_tfm import units
from paddle_tfm.protocols import Metric


@pytest.mark.parametrize(
    ("value", "unit", "text", "signed", "difference"),
    [
        (0.997, "%", "99.7%", "+99.7", "+99.7 points"),
        (-0.0004, "%", "-0.0%", "−0.0", "−0.0 points"),
        (34.2137, "points", "34.21", "+34.21", "+34.21"),
        (4.0, "points", "4.00", "+4.00", "+4.00"),
        (12.3456, "", "12.346", "+12.346", "+12.346"),
        (-0.001234, "", "-0.00123", "−0.00123", "−0.00123"),
        (0.0, "", "0.000", "+0.000", "+0.000"),
        (math.inf, "", "inf", "+inf", "+inf"),
    ],
)
def test_a_value_and_a_difference(value, unit, text, signed, difference):
    assert (units.text(value, unit), units.signed(value, unit)) == (text, signed)
    assert units.difference(value, unit) == difference


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("unit", units.UNITS)
def test_nothing_is_a_dash(value, unit):
    assert units.text(value, unit) == units.plus_minus(value, None, unit) == "–"


@pytest.mark.parametrize(
    ("mean", "spread", "unit", "text"),
    [
        (0.997, 0.00123, "%", "99.7% ± 0.1"),
        (34.2137, 0.456, "points", "34.21 ± 0.46"),
        (1.5, 0.0123, "", "1.500 ± 0.012"),
        (1e-5, 2e-6, "", "1e-05 ± 2e-06"),
        (0.5, None, "%", "50.0%"),
    ],
)
def test_mean_and_spread_end_at_the_same_digit(mean, spread, unit, text):
    assert units.plus_minus(mean, spread, unit) == text


def test_ticks_are_as_short_as_they_can_be():
    assert [units.tick(value, "%") for value in (0.5, 0.995, 1.0)] == ["50%", "99.5%", "100%"]
    assert [units.tick(value) for value in (0.5, 20.0, 5000.0)] == ["0.5", "20", "5000"]


def test_a_metric_with_an_unknown_unit_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match=r"^`unit` of the metric Speed must be one of '', '%', 'points', but is 'ms'$"):

        class Speed(Metric):
            """Milliseconds."""

            unit = "ms"
