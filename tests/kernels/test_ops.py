"""Ops by the kernels of a CPU, beside NumPy, where the kit's random numbers do not lead."""

import numpy as np
import paddle
import pytest
from kernels_in_use import in_search, in_step

from paddle_tfm import ops
from paddle_tfm_plugins.kernel import softmax


@pytest.mark.parametrize("block", [1, 70, 1000])
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_log_softmax_in_place_is_that_of_numpy(spread, block, monkeypatch):
    """Blocks of one row, of one row and a part, and of all rows."""
    monkeypatch.setattr(softmax, "BLOCK", block)
    logits = (np.random.default_rng(0).normal(size=(6, 50)) * spread).astype("float32")
    exact = np.logaddexp.reduce(logits.astype("float64"), -1, keepdims=True)
    tensor = paddle.to_tensor(logits)
    with paddle.no_grad(), in_search():
        result = ops.log_softmax_(tensor)
    np.testing.assert_allclose(result.numpy(), logits - exact, rtol=1e-6, atol=1e-4)
    assert result.data_ptr() == tensor.data_ptr()
    tensor = paddle.to_tensor(logits, stop_gradient=False)
    with in_step():
        np.testing.assert_allclose(ops.log_softmax_(tensor).numpy(), logits - exact, rtol=1e-6, atol=1e-4)
    np.testing.assert_array_equal(tensor.numpy(), logits)  # where gradients are recorded it is not touched


@pytest.mark.parametrize(("width", "k"), [(8000, 10), (1025, 3), (60, 10)])
def test_top_k_is_the_end_of_a_sorted_row(width, k):
    rows = np.random.default_rng(0).normal(size=(9, width)).astype("float32")
    rows[0, : width // 2] = -1e9
    rows[1] = np.sort(rows[1])  # the largest all in one block
    with in_search():
        values, places = ops.top_k(paddle.to_tensor(rows), k)
    expected = np.argsort(-rows, 1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(rows, expected, 1))


def test_top_k_of_a_row_that_is_mostly_impossible():
    rows = np.full((2, 2000), -1e9, "float32")
    rows[:, 1999] = 1.0
    with in_search():
        values, places = ops.top_k(paddle.to_tensor(rows), 3)
    assert places.numpy()[:, 0].tolist() == [1999, 1999]
    assert (places.numpy() < 2000).all(), "no place beyond the row"
    assert (values.numpy()[:, 1:] == -1e9).all()
