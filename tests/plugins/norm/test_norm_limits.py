"""Norms whose inputs are in half precision."""

import numpy as np
import paddle
import pytest

WITH_STATISTICS = ("batch", "power")


@pytest.fixture
def make(registry):
    return lambda name: registry.build("norm", name, d_model=8, max_length=4)


@pytest.mark.parametrize("name", ["dyt", "group", "rms", "scale", *WITH_STATISTICS])
def test_half_precision_comes_back_as_such_and_statistics_are_float32(make, name):
    x = paddle.to_tensor(np.random.default_rng(0).normal(2.0, 3.0, (2, 3, 8)).astype("float32")).astype("bfloat16")
    norm, reference = make(name), make(name)
    y, expected = norm(x), reference(x.astype("float32"))
    assert y.dtype == paddle.bfloat16
    np.testing.assert_allclose(y.astype("float32").numpy(), expected.numpy(), rtol=0.01, atol=0.05)
    for ours, theirs in zip(norm.buffers(), reference.buffers()):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
