"""Ops by their formulas and by the kernels of a CPU, beside NumPy; norms that are written with them, both ways."""

from contextlib import nullcontext

import numpy as np
import paddle
import pytest
from kernels_in_use import in_search, in_step

from paddle_tfm import ops
from paddle_tfm_plugins.kernel import softmax
from paddle_tfm_plugins.norm.batch import BatchNorm
from paddle_tfm_plugins.norm.batch_per_position import BatchNormPerPosition
from paddle_tfm_plugins.norm.layer import LayerNorm
from paddle_tfm_plugins.norm.layer_std import LayerStd
from paddle_tfm_plugins.norm.rms import RMSNorm

MAKERS = {
    "layer": lambda: LayerNorm(6),
    "layer_std": lambda: LayerStd(6),
    "rms": lambda: RMSNorm(6),
    "batch": lambda: BatchNorm(6),
    "batch_per_position": lambda: BatchNormPerPosition(6, 8),
}
both = pytest.mark.parametrize("computing", [in_search, nullcontext], ids=["kernel", "formula"])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MAKERS)
def test_norms_by_kernels_and_by_formulas_agree(name, training):
    rng = np.random.default_rng(0)
    x, g = (paddle.to_tensor(rng.normal(size=(4, 5, 6)).astype("float32")) for _ in range(2))
    valid = paddle.to_tensor(np.arange(5) < np.array([[5], [3], [4], [5]]))
    x.stop_gradient = False
    seen = []
    for computing in (in_step, nullcontext):
        norm = MAKERS[name]()
        norm.train() if training else norm.eval()
        with computing():
            y = norm(x, valid, paddle.arange(5).unsqueeze(0))
            gradients = paddle.grad(y, [x, *norm.parameters()], grad_outputs=g)
        seen.append([tensor.numpy() for tensor in (y, *gradients, *norm.buffers())])
    for by_kernel, by_formula in zip(*seen):
        np.testing.assert_allclose(by_kernel, by_formula, rtol=1e-4, atol=1e-5)


@both
@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
def test_log_softmax_is_that_of_numpy_however_far_apart_the_logits_are(computing, spread):
    logits = (np.random.default_rng(0).normal(size=(6, 50)) * spread).astype("float32")
    exact = np.logaddexp.reduce(logits.astype("float64"), -1, keepdims=True)
    with computing():
        log_sums, log_softmax = ops.log_sum_exp(paddle.to_tensor(logits)), ops.log_softmax_(paddle.to_tensor(logits))
    np.testing.assert_allclose(log_sums.numpy(), exact, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(log_softmax.numpy(), logits - exact, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("block", [1, 70, 1000])
@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_softmax_in_place_is_that_of_numpy(dtype, spread, block, monkeypatch):
    """Blocks of one row, of one row and a part, and of all rows."""
    monkeypatch.setattr(softmax, "BLOCK", block)
    logits = (np.random.default_rng(0).normal(size=(6, 50)) * spread).astype(dtype)
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


@both
def test_the_largest_column(computing):
    rows = np.array([[0.0, 3.0, 3.0], [-1.0, -2.0, -3.0]], "float32")
    with computing():
        columns = ops.argmax(paddle.to_tensor(rows))
    assert columns.tolist() == [1, 0] and columns.dtype == np.int64


@both
def test_the_gradient_of_log_softmax(computing):
    rng = np.random.default_rng(0)
    logits, up = (paddle.to_tensor(rng.normal(size=(6, 7))) for _ in range(2))
    logits.stop_gradient = False
    with computing():
        (gradient,) = paddle.grad(ops.log_softmax_(logits), [logits], up)
    p = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum(-1, keepdims=True)
    np.testing.assert_allclose(gradient.numpy(), up.numpy() - p * up.numpy().sum(-1, keepdims=True), atol=1e-12)


@both
@pytest.mark.parametrize(
    ("width", "k"), [(8000, 10), (8000, 1), (1024, 3), (1025, 3), (3 * 128 + 1, 1), (60, 10), (5, 2)]
)
def test_top_k_is_the_end_of_a_sorted_row(computing, width, k):
    rows = np.random.default_rng(0).normal(size=(9, width)).astype("float32")
    rows[0, : width // 2] = -1e9
    rows[1] = np.sort(rows[1])  # the largest all in one block
    with computing():
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
