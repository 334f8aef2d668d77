"""Sums over ranks, as one rank sees them; that several get what one process gets, tests/train/ranks/test_distributed_step.py
holds them to."""

import numpy as np
import paddle
import pytest

from paddle_tfm.ranks import divided, moments_over_ranks, on_gradient, sum_over_ranks


def of_three(x, number):
    """All three have the same numbers."""
    return 3 * x


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [[], [1], [2, 3]])
def test_a_sum_has_its_type_and_shape_and_its_gradient_is_the_sum_of_gradients(dtype, shape):
    x = paddle.full(shape, 2.0, dtype)
    x.stop_gradient = False
    with divided(of_three):
        y = sum_over_ranks(x)
        (y * y).sum().backward()
    assert y.dtype == x.dtype and y.shape == x.shape
    assert np.all(x.grad.astype("float32").numpy() == 3 * 2 * 6.0)


def test_backward_passes_come_in_the_reverse_order_and_nothing_else_does():
    """Whichever way leads from the loss to them; what needs no gradient takes no sum in the backward pass."""
    calls = []

    def total(x, number):
        calls.append((number, float(x.sum())))
        return x

    x = paddle.ones([1])
    x.stop_gradient = False
    with divided(total):
        first = sum_over_ranks(x * 1)
        for _ in range(5):
            first = first * 1.0  # a longer way back
        sum_over_ranks(paddle.full([1], 9.0))
        hooked = on_gradient(x * 7, lambda gradient: sum_over_ranks(gradient * 10))
        second = sum_over_ranks(x * 2)
        (second * 5 + hooked * 3 + first * 4).sum().backward()
    assert [value for _, value in calls] == [1.0, 9.0, 2.0, 5.0, 30.0, 4.0]
    assert [number for number, _ in calls] == list(range(1, 7))
    assert x.grad.tolist() == [2 * 5 + 7 * 30 + 4]


def test_moments_of_ranks_are_those_of_all_rows():
    """Of ranks with many rows, with one and with none; far from 0, where a difference of float32 would be noise."""
    rows = np.random.default_rng(0).normal(3000.0, [1.0, 0.3, 20.0], [40, 3])
    weights, sent = np.random.default_rng(1).normal(size=[2, 3]), []

    def moments(part, total):
        x = paddle.to_tensor(part.astype("float32"))
        x.stop_gradient = False
        mean = x.sum(0) / max(len(part), 1)
        variance = paddle.square(x - mean).sum(0) / max(len(part), 1)
        with divided(total):
            count, *found = moments_over_ranks(paddle.full([], len(part)), mean, variance)
            sum((each * paddle.to_tensor(weight)).sum() for each, weight in zip(found, weights)).backward()
        return [each.numpy() for each in (count, *found, x.grad)]

    def recorded(x, number):
        if number == 1:
            sent.append(x)
        return x

    def summed(x, number):
        return sum(sent) if number == 1 else 3 * x  # each has the same loss

    parts = [rows[:39], rows[39:], rows[:0]]
    for part in parts:
        moments(part, recorded)
    mean = rows.astype("float32").astype("float64").mean(0)
    for part in parts:
        count, whole, variance, gradient = moments(part, summed)
        assert count == 40
        np.testing.assert_allclose(whole, mean, rtol=1e-6)
        np.testing.assert_allclose(variance, rows.astype("float32").astype("float64").var(0), rtol=1e-4)
        expected = 3 * (weights[0] + 2 * weights[1] * (part.astype("float32") - mean)) / 40
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-5)


def test_what_a_sum_raises_in_a_backward_pass_comes_out_as_it_is():
    def total(x, number):
        if number == 2:
            raise KeyError("lost")
        return x

    x = paddle.ones([1])
    x.stop_gradient = False
    with pytest.raises(KeyError, match="lost"), divided(total):
        sum_over_ranks(x).sum().backward()
