"""What a mask hides, written out in NumPy, and that both ways of adding it are one."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import MASKED_SCORE, Mask

VALID = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)


class Bias:
    """An encoding with a learned bias for each head and distance."""

    def __init__(self, heads):
        self.table = paddle.to_tensor(np.random.default_rng(3).normal(size=(heads, 9)).astype("float32"))
        self.table.stop_gradient = False

    def bias(self, q_positions, k_positions):
        distance = (k_positions.unsqueeze(1) - q_positions.unsqueeze(2) + 4)[0]  # [Tq, Tk]
        return self.table.index_select(distance.flatten(), 1).reshape([1, -1, *distance.shape])


class NoBias:
    def bias(self, q_positions, k_positions):
        return None


def expected(first, queries, causal, table=None):
    hidden = np.zeros((3, 2, queries, 5))
    for b in range(3):
        for q in range(queries):
            for k in range(5):
                if not VALID[b, k] or (causal and k > first + q):
                    hidden[b, :, q, k] = MASKED_SCORE
                if table is not None:
                    hidden[b, :, q, k] += table[:, k - first - q + 4]
    return hidden


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("first", "queries", "causal"), [(0, 5, False), (0, 5, True), (4, 1, True), (2, 3, True), (0, 1, False)]
)
def test_the_mask_is_added_where_a_key_is_hidden(first, queries, causal, biased):
    encoding = Bias(2) if biased else NoBias()
    keys = paddle.arange(5).unsqueeze(0)
    mask = Mask(keys[:, first : first + queries], keys, paddle.to_tensor(VALID), causal, encoding)
    scores = paddle.to_tensor(np.random.default_rng(1).normal(size=(3, 2, queries, 5)).astype("float32"))
    wanted = scores.numpy() + expected(first, queries, causal, encoding.table.numpy() if biased else None)
    np.testing.assert_allclose(mask.add_to(scores).numpy(), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose((scores + mask.dense()).numpy(), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(mask.add_to(scores * 2).numpy() - scores.numpy(), wanted, rtol=1e-6, atol=1e-6)


def test_other_scores_get_a_mask_of_their_own_shape():
    keys = paddle.arange(5).unsqueeze(0)
    mask = Mask(keys, keys, paddle.to_tensor(VALID), True, NoBias())
    for heads in (2, 4, 1, 2):
        assert mask.add_to(paddle.zeros([3, heads, 5, 5])).shape == [3, heads, 5, 5]
    assert mask.add_to(paddle.zeros([3, 2, 5, 5], "float64")).dtype == paddle.float64


def test_a_learned_bias_gets_its_gradient():
    encoding, keys = Bias(2), paddle.arange(5).unsqueeze(0)
    mask = Mask(keys, keys, paddle.ones([3, 5], "bool"), False, encoding)
    (found,) = paddle.grad(mask.add_to(paddle.zeros([3, 2, 5, 5])).sum(), [encoding.table])
    np.testing.assert_allclose(found.numpy(), 3.0 * np.array([[1, 2, 3, 4, 5, 4, 3, 2, 1]] * 2))
