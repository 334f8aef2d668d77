"""Fixtures of the norm tests: float64, and gradients compared with finite differences."""

import paddle_tfm  # noqa: F401, I001 (before Paddle)
import numpy as np
import paddle
import pytest


@pytest.fixture
def float64():
    """New parameters and buffers are float64 in this test."""
    paddle.set_default_dtype("float64")
    yield
    paddle.set_default_dtype("float32")


@pytest.fixture
def assert_gradients():
    """assert_gradients(f, *tensors): the gradients of Σ f · fixed noise agree with central differences."""

    def check(function, *tensors, step=1e-6, tolerance=1e-6):
        for tensor in tensors:
            tensor.stop_gradient = False
        out = function()
        noise = paddle.to_tensor(np.random.default_rng(7).normal(size=out.shape))
        (out * noise).sum().backward()
        for tensor in tensors:
            start = tensor.numpy()
            expected = np.zeros(start.size)
            for i in range(start.size):
                sides = []
                for sign in (1, -1):
                    moved = start.copy().reshape(-1)
                    moved[i] += sign * step
                    with paddle.no_grad():
                        tensor.set_value(moved.reshape(start.shape))
                        sides.append(float((function() * noise).sum()))
                expected[i] = (sides[0] - sides[1]) / (2 * step)
            with paddle.no_grad():
                tensor.set_value(start)
            np.testing.assert_allclose(tensor.grad.numpy().reshape(-1), expected, atol=tolerance, rtol=1e-5)

    return check
