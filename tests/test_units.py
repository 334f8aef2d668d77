"""One way of writing a number, for the terminal, the report, the figure and the progress lines."""

import math
from pathlib import Path

import pytest

from paddle_tfm import units
from paddle_tfm.protocols import Metric


@pytest.mark.parametrize(
    ("value", "unit", "text", "signed", "difference"),
    [
        (0.997, "%", "99.7%", "+99.7", "+99.7 points"),
        (-0.0004, "%", "-0.0%", "−0.0", "−0.0 points"),
        (0.99973, "%", "99.97%", "+100.0", "+100.0 points"),  # not all, and not nothing
        (0.000472, "%", "0.05%", "+0.0", "+0.0 points"),
        (1.0, "%", "100.0%", "+100.0", "+100.0 points"),
        (1.3, "%", "130.0%", "+130.0", "+130.0 points"),
        (34.2137, "points", "34.21", "+34.21", "+34.21"),
        (4.0, "points", "4.00", "+4.00", "+4.00"),
        (12.3456, "", "12.346", "+12.346", "+12.346"),
        (-0.001234, "", "-0.00123", "−0.00123", "−0.00123"),
        (0.0, "", "0.000", "+0.000", "+0.000"),
        (math.inf, "", "inf", "+inf", "+inf"),
        (167271073776.4, "", "1.67e+11", "+1.67e+11", "+1.67e+11"),  # a loss that explodes
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
        (0.997, 0.00123, "%", "99.70% ± 0.12"),
        (34.2137, 0.456, "points", "34.2 ± 0.5"),
        (34.2137, 28.4, "points", "34 ± 28"),
        (34.2137, 0.0, "points", "34.21 ± 0.00"),
        (0.9964, 0.00096, "%", "99.64% ± 0.10"),
        (1.5, 0.0123, "", "1.500 ± 0.012"),
        (1e-5, 2e-6, "", "0.000010 ± 0.000002"),
        (1e-8, 2e-9, "", "1e-08 ± 2e-09"),
        (0.5, None, "%", "50.0%"),
        (167271073776.4, 9227586888.0, "", "1.67e+11 ± 9.23e+09"),
        (32000000.0, 4.0, "", "32000000 ± 4"),
        (500.0, 3e7, "", "500 ± 30000000"),
    ],
)
def test_mean_and_spread_end_at_the_same_digit(mean, spread, unit, text):
    assert units.plus_minus(mean, spread, unit) == text


@pytest.mark.parametrize(
    ("unit", "higher", "ends"),
    [("%", True, (0, 1)), ("%", False, (0, math.inf)), ("points", True, (0, 100)), ("", False, (-math.inf, math.inf))],
)
def test_what_values_a_metric_may_have(unit, higher, ends):
    assert units.bounds(unit, higher) == ends


def test_a_metric_with_an_unknown_unit_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match=r"^`unit` of the metric Speed must be one of '', '%', 'points', but is 'ms'$"):

        class Speed(Metric):
            """Milliseconds."""

            unit = "ms"


@pytest.mark.parametrize(("text", "number"), [("7", 7), (" 12 ", None), ("007", 7)])
def test_a_whole_number_is_read(text, number):
    assert units.whole_number(text, 1, 12) == number


@pytest.mark.parametrize("text", ["", "0", "13", "-1", "1.0", "1_0", "²"])
def test_what_is_no_number_of_the_range_is_none(text):
    assert units.whole_number(text, 1, 12) is None


@pytest.mark.parametrize(
    "path, word", [("runs/x", "runs/x"), ("-out", "./-out"), ("my runs", "'my runs'"), ("-$(id)", "'./-$(id)'")]
)
def test_a_path_in_a_command_is_one_word_and_no_option(path, word):
    assert units.in_shell(Path(path)) == word
