"""The space that tuning searches: what a recipe may write, that its points cover it evenly, and how it is widened."""

import math

import numpy as np
import pytest
from scipy import stats

from paddle_tfm.recipe.sections.space import Axis, points, size

PEAK = Axis.parse("peak", {"log": [3e-4, 1e-2]})
WARMUP = Axis.parse("warmup", [0, 200, 1000])


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ([], "has no value"),
        ([1], "has 1 value, so that nothing can be chosen; write two or more"),
        ([1, 2, 1], "has the value 1 twice"),
        (3, "must be a list of values, {log: [a, b]}, {linear: [a, b]}, {log_int: [a, b]} or {int: [a, b]}, but is 3"),
        (
            "log(0.1",
            "must be a list of values, {log: [a, b]}, {linear: [a, b]}, {log_int: [a, b]} or {int: [a, b]}, but is 'log(",
        ),
        ({"exp": [1, 2]}, "must be a list of values"),
        ({"linear": ["a", "b"]}, "must have two numbers as its ends, as {linear: [1, 10]}, but has ['a', 'b']"),
        ({"linear": [1, 2, 3]}, "must have two numbers as its ends"),
        ({"log": [1, 1]}, "must go from a smaller number to a larger one, but goes from 1 to 1"),
        ({"linear": [0, math.inf]}, "must go from a smaller number to a larger one"),
        ({"log": [0, 1]}, "must begin above 0, as it is logarithmic, but begins at 0"),
        ({"int": [1, 2.5]}, "must have whole numbers as its ends"),
    ],
)
def test_what_is_wrong_with_an_axis_is_a_sentence(written, sentence):
    with pytest.raises(ValueError) as caught:
        Axis.parse("a.b", written)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "written", [{"log": [0.0003, 0.01]}, {"linear": [0.0, 0.3]}, {"log_int": [2, 64]}, {"int": [1, 4]}, [1, "a"]]
)
def test_an_axis_is_written_as_it_is_read(written):
    assert Axis.parse("a.b", written).written() == written


def shares(axis, values):
    """How far along the axis each value lies, 0 to 1."""
    low, high = axis.values
    if axis.is_log:
        low, high, values = math.log(low), math.log(high), np.log(values)
    return (np.asarray(values) - low) / (high - low)


@pytest.mark.parametrize("axis", [PEAK, Axis.parse("dropout", {"linear": [0.1, 0.5]})])
def test_points_are_spread_evenly_by_ratio_or_by_difference(axis):
    for count in (4, 12, 50):
        values = [point[axis.path] for point in points([axis], count)]
        # Of a van der Corput sequence a share of any interval is that interval's length, up to 1 / count and a bit.
        distance = stats.kstest(shares(axis, values), "uniform").statistic
        assert distance <= 2 / count, (count, distance)
        assert all(float(f"{value:.4g}") == value for value in values)


def test_points_of_several_axes_cover_their_product_and_come_from_the_space_alone():
    space = [PEAK, WARMUP]
    first = points(space, 12)
    assert first == points([Axis.parse(axis.path, axis.written()) for axis in space], 12)
    assert points(space, 5) == first[:5]  # more trials go on where fewer ended
    assert len({tuple(point.values()) for point in first}) == 12
    counts = [sum(point["warmup"] == value for point in first) for value in WARMUP.values]
    assert counts == [4, 4, 4]
    for value in WARMUP.values:  # and each of its values meets both halves of the other axis
        halves = [share > 0.5 for share in shares(PEAK, [p["peak"] for p in first if p["warmup"] == value])]
        assert any(halves) and not all(halves)


@pytest.mark.parametrize(("written", "number"), [([1, 2, 3], 3), ({"int": [1, 4]}, 4), ({"log_int": [2, 9]}, 8)])
def test_each_point_of_a_small_space_comes_once(written, number):
    axis = Axis.parse("a.b", written)
    assert axis.size == size([axis]) == number
    found = [point["a.b"] for point in points([axis], 100)]
    assert len(found) == len(set(found)) == number and all(axis.holds(value) for value in found)


@pytest.mark.parametrize(
    ("written", "below", "above"),
    [
        ({"log": [0.001, 0.1]}, {"log": [0.0001, 0.1]}, {"log": [0.001, 1.0]}),
        ({"linear": [0.2, 0.4]}, {"linear": [0.1, 0.4]}, {"linear": [0.2, 0.5]}),
        ({"linear": [0.0, 0.4]}, {"linear": [0.0, 0.4]}, {"linear": [0.0, 0.6]}),
        ({"linear": [-1.0, 1.0]}, {"linear": [-2.0, 1.0]}, {"linear": [-1.0, 2.0]}),
        ({"int": [1, 5]}, {"int": [0, 5]}, {"int": [1, 7]}),
        ({"log_int": [4, 64]}, {"log_int": [1, 64]}, {"log_int": [4, 256]}),
        ({"log_int": [1, 64]}, {"log_int": [1, 64]}, {"log_int": [1, 512]}),
        ([0, 200, 1000], [0, 200, 1000], [0, 200, 1000, 5000]),
        ([0.1, 0.2], [0.05, 0.1, 0.2], [0.1, 0.2, 0.4]),
        ([-1, 0, 1], [-2, -1, 0, 1], [-1, 0, 1, 2]),
    ],
)
def test_an_axis_is_widened_as_it_was_divided_and_stays_above_zero(written, below, above):
    axis = Axis.parse("a.b", written)
    assert axis.widened(-1).written() == below
    assert axis.widened(1).written() == above


def test_the_points_of_a_wider_space_lie_beyond_the_one_before():
    before, wider = [PEAK, WARMUP], [PEAK.widened(1), WARMUP.widened(1)]
    new = points(wider, 12, beyond=before)
    assert len(new) == 12
    assert all(point["peak"] > PEAK.values[1] or point["warmup"] == 5000 for point in new)
    assert {point["warmup"] for point in new if point["peak"] > PEAK.values[1]} == {0, 200, 1000, 5000}
    assert len(points([WARMUP.widened(1)], 12, beyond=[WARMUP])) == 1


def test_a_value_lies_at_the_edge_where_nothing_beyond_it_was_tried():
    tried = [0.001, 0.002, 0.009]
    assert [PEAK.edge(value, tried) for value in tried] == [-1, 0, 1]
    assert [WARMUP.edge(value, [200]) for value in WARMUP.values] == [-1, 0, 1]
    for unordered in (["adamw", "lion"], [True, False], [3, 1, 2], [1, "a"], [{"name": "a"}, {"name": "b"}]):
        axis = Axis.parse("a.b", unordered)
        assert [axis.edge(value, unordered) for value in unordered] == [0] * len(unordered)
