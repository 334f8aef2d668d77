"""The nearest of whole numbers, beside trying all of them."""

import numpy as np
import pytest

from paddle_tfm.sweep.equal import Unreachable, nearest, nearest_sum


@pytest.mark.parametrize("step", [1, 4])
def test_it_is_what_trying_all_numbers_gives(step, rng):
    for _ in range(50):
        values = np.cumsum(rng.integers(1, 50, size=300)) ** rng.choice([1, 1.5, 0.5])
        start, wanted = int(rng.integers(1, 300)), rng.uniform(values[0], values[-1])
        number, value = nearest(lambda n, values=values: values[n // step - 1], wanted, start * step, step, 300 * step)
        assert number % step == 0 and value == values[number // step - 1]
        assert abs(value - wanted) == pytest.approx(np.abs(values - wanted).min())


@pytest.mark.parametrize(
    ("quantity", "wanted", "at"),
    [(lambda n: 7, 9, 20), (lambda n: 7, 5, 5), (lambda n: n, 200, 64), (lambda n: 10 + n, 5, 1)],
)
def test_what_is_not_to_be_had_is_said_with_the_nearest(quantity, wanted, at):
    with pytest.raises(Unreachable) as caught:
        nearest(quantity, wanted, 10, most=64)
    assert (caught.value.number, caught.value.value) == (at, quantity(at))


def test_a_sum_is_nearest_where_trying_all_says_so(rng):
    for _ in range(100):
        parts = rng.integers(1, 100, size=50)
        wanted, sums = rng.uniform(-10, parts.sum()), parts.cumsum()
        number, total = nearest_sum(iter(parts.tolist()), wanted)
        assert total == sums[number - 1] and abs(total - wanted) == pytest.approx(np.abs(sums - wanted).min())
