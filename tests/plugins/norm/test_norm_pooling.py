"""`Norm.pooling`: running statistics as those of all tokens of several batches, against NumPy; and `cumulative`."""

import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.batch import BatchNorm
from paddle_tfm_plugins.norm.batch_per_position import BatchNormPerPosition
from paddle_tfm_plugins.norm.power import PowerNorm

WIDTH, POSITIONS = 3, np.array([[0, 1, 2, 3]])


def batches():
    """Three batches [B, 4, 3] of different sizes, means and amounts of padding, the last of one token."""
    rng = np.random.default_rng(0)
    shapes = [(6, [4, 2, 3, 4, 1, 2]), (2, [4, 3]), (1, [1])]
    for number, (rows, lengths) in enumerate(shapes):
        x = rng.normal(5.0 * number, 1.0 + number, (rows, 4, WIDTH)).astype("float32")
        yield x, np.arange(4) < np.array(lengths)[:, None]


def pooled(norm):
    for tensor in norm.buffers():
        tensor.set_value(tensor + 7)  # what was known before
    with paddle.no_grad(), norm.pooling():
        for x, valid in batches():
            norm(*map(paddle.to_tensor, (x, valid, POSITIONS)))
    return norm


def test_by_position_where_a_batch_has_two_tokens_of_it():
    norm = pooled(BatchNormPerPosition(WIDTH, 5))
    for position in range(4):
        parts = [x[:, position][valid[:, position]] for x, valid in batches()]
        tokens = np.concatenate([part for part in parts if len(part) > 1])
        np.testing.assert_allclose(norm.running_mean.numpy()[position], tokens.mean(0), rtol=1e-5)
        np.testing.assert_allclose(norm.running_variance.numpy()[position], tokens.var(0), rtol=1e-5)
    assert (norm.running_mean.numpy()[4] == 7.0).all() and (
        norm.running_variance.numpy()[4] == 8.0
    ).all()  # not reached


def test_the_quadratic_mean_and_nothing_that_training_counts():
    norm = pooled(PowerNorm(WIDTH))
    tokens = np.concatenate([x[valid] for x, valid in batches()])
    np.testing.assert_allclose(norm.running_square.numpy(), (tokens**2).mean(0), rtol=1e-5)
    assert norm.passes.item() == 7 and (norm.running_gradient.numpy() == 7.0).all()


def test_a_block_that_fails_or_sees_nothing_changes_nothing():
    norm = BatchNorm(WIDTH)
    x = paddle.ones([2, 2, WIDTH])
    with pytest.raises(RuntimeError, match="no more"), norm.pooling():
        norm(x)
        raise RuntimeError("no more")
    with norm.pooling():
        pass
    assert (norm.running_mean.numpy() == 0.0).all() and (norm.running_variance.numpy() == 1.0).all()
    norm(x)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1, rtol=1e-6)  # running values move again


def test_cumulative_is_the_mean_over_batches():
    norm = BatchNorm(WIDTH, momentum="cumulative")
    parts = [(x, valid) for x, valid in batches()][:2]
    for x, valid in parts:
        norm(*map(paddle.to_tensor, (x, valid)))
    means = [x[valid].mean(0) for x, valid in parts]
    variances = [x[valid].var(0, ddof=1) for x, valid in parts]
    np.testing.assert_allclose(norm.running_mean.numpy(), np.mean(means, 0), rtol=1e-5)
    np.testing.assert_allclose(norm.running_variance.numpy(), np.mean(variances, 0), rtol=1e-5)
    assert norm.state_dict()["batches"].item() == 2.0
