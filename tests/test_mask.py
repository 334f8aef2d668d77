"""What a mask hides, written out in NumPy, and that both ways of adding it are one."""

from __future__ import annotations

import gc
import weakref

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
    ("first", "queries", "causal"),
    [(0, 5, False), (0, 5, True), (4, 1, True), (2, 3, True), (0, 1, False), (0, 1, True), (2, 1, True)],
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


@pytest.mark.parametrize("biased", [False, True])
def test_a_mask_that_hides_nothing_by_its_callers_word_adds_the_bias_alone(biased):
    encoding = Bias(2) if biased else NoBias()
    keys = paddle.arange(5).unsqueeze(0)

    def never():
        raise AssertionError("nobody asked which keys are real")

    mask = Mask(keys[:, 4:], keys, never, True, encoding, sees_all=True)
    scores = paddle.to_tensor(np.random.default_rng(1).normal(size=(3, 2, 1, 5)).astype("float32"))
    bias = encoding.table.numpy()[None, :, None, :5] if biased else 0.0
    np.testing.assert_allclose(mask.add_to(scores).numpy(), scores.numpy() + bias, rtol=1e-6, atol=1e-6)
    mask = Mask(keys[:, 4:], keys, lambda: paddle.ones([3, 5], "bool"), True, encoding, sees_all=True)
    assert mask.k_valid.shape == [3, 5] and bool(mask.allowed().all())
    near = mask.restricted("near", lambda q, k: q - k < 2)
    hidden = np.where(np.arange(5) < 3, MASKED_SCORE, 0.0)
    np.testing.assert_allclose(near.add_to(scores).numpy(), scores.numpy() + bias + hidden, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("valid", [VALID, np.ones([3, 5], bool)])
@pytest.mark.parametrize("causal", [False, True])
def test_other_queries_see_what_their_positions_allow(causal, valid):
    keys, scores = paddle.arange(5).unsqueeze(0), paddle.zeros([3, 2, 1, 5])
    mask = Mask(keys[:, :1], keys, paddle.to_tensor(valid), causal, NoBias())
    for position in (0, 3, 1, 4):
        mask = mask.with_queries(keys[:, position : position + 1])
        same = Mask(keys[:, position : position + 1], keys, paddle.to_tensor(valid), causal, NoBias())
        near = mask.restricted("near", lambda q, k: (q - k).abs() < 2)
        expected = valid & (np.arange(5) <= position) if causal else valid
        np.testing.assert_array_equal(mask.add_to(scores).numpy()[:, 0, 0] == 0.0, expected)
        np.testing.assert_array_equal(mask.add_to(scores).numpy(), same.add_to(scores).numpy())
        expected = expected & (abs(np.arange(5) - position) < 2)
        np.testing.assert_array_equal(near.add_to(scores).numpy()[:, 0, 0] == 0.0, expected)


# --------------------------------------------------------------------------------------------------------- restrictions


def even_distance(q, k):
    return (q - k) % 2 == 0


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("first", "queries", "causal"), [(0, 5, False), (0, 5, True), (4, 1, True), (2, 3, False)])
def test_a_restriction_hides_more_keys(first, queries, causal, biased):
    encoding = Bias(2) if biased else NoBias()
    keys = paddle.arange(5).unsqueeze(0)
    mask = Mask(keys[:, first : first + queries], keys, paddle.to_tensor(VALID), causal, encoding)
    distance = np.arange(first, first + queries)[:, None] - np.arange(5)  # [Tq, Tk]
    scores = paddle.to_tensor(np.random.default_rng(1).normal(size=(3, 2, queries, 5)).astype("float32"))
    table = encoding.table.numpy() if biased else None
    for key, predicate, near in (
        ("even", even_distance, distance % 2 == 0),
        (("window", 1), lambda q, k: (q - k).abs() <= 1, abs(distance) <= 1),
    ):
        hidden = expected(first, queries, causal)
        hidden[:, :, ~near] = MASKED_SCORE
        restricted = mask.restricted(key, predicate)
        shape = np.broadcast_shapes(restricted.allowed().shape, (3, 1, queries, 5))
        np.testing.assert_array_equal(np.broadcast_to(restricted.allowed().numpy(), shape), hidden[:, :1] == 0)
        bias = expected(first, queries, causal, table) - expected(first, queries, causal)
        np.testing.assert_allclose(
            restricted.add_to(scores).numpy(), scores.numpy() + hidden + bias, rtol=1e-6, atol=1e-6
        )
    np.testing.assert_allclose(  # and the mask itself is what it was
        mask.add_to(scores).numpy(), scores.numpy() + expected(first, queries, causal, table), rtol=1e-6, atol=1e-6
    )


def test_restrictions_of_a_restriction_hide_what_either_hides():
    keys = paddle.arange(5).unsqueeze(0)
    mask = Mask(keys, keys, paddle.ones([1, 5], "bool"), True)
    both = mask.restricted("even", even_distance).restricted(("window", 2), lambda q, k: (q - k).abs() <= 2)
    distance = np.arange(5)[:, None] - np.arange(5)
    np.testing.assert_array_equal(both.allowed().numpy()[0, 0], (distance >= 0) & (distance <= 2) & (distance % 2 == 0))


def test_a_step_of_decoding_whose_window_holds_every_key_adds_nothing():
    mask = Mask(paddle.to_tensor([[4]]), paddle.arange(5).unsqueeze(0), paddle.ones([1, 5], "bool"), True)
    scores = paddle.zeros([1, 2, 1, 5])
    assert mask.restricted("wide", lambda q, k: (q - k).abs() <= 4).add_to(scores) is scores
    assert mask.restricted("narrow", lambda q, k: (q - k).abs() <= 3).add_to(scores).numpy().min() == MASKED_SCORE


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_what_is_hidden_has_no_weight_whatever_its_score(dtype):
    """States of 1e10 give scores of 1e20 and more, where no norm acts."""
    keys = paddle.arange(3).unsqueeze(0)
    mask = Mask(keys, keys, paddle.ones([1, 3], "bool"), True)
    scores = paddle.to_tensor([[[[-1.0, 5e20, 1e25], [3e20, 3e20, 1e25], [-2.0, -1.0, -1e20]]]], "float64")
    weights = paddle.nn.functional.softmax(scores + mask.dense(dtype).astype("float64"), -1).numpy()[0, 0]
    np.testing.assert_allclose(weights, [[1, 0, 0], [0.5, 0.5, 0], [1 / (1 + np.e), np.e / (1 + np.e), 0]], atol=2e-3)


def test_under_another_encoding_a_mask_adds_the_bias_of_that_one():
    keys, encoding = paddle.arange(5).unsqueeze(0), Bias(2)
    mask = Mask(keys, keys, paddle.to_tensor(VALID), True, NoBias()).with_encoding(encoding)
    np.testing.assert_allclose(mask.dense().numpy(), expected(0, 5, True, encoding.table.numpy()), rtol=1e-6, atol=1e-6)


def test_a_restriction_is_forgotten_with_its_pass():
    """No cycle of references holds the tensors of a pass until the collector runs."""
    keys = paddle.arange(5).unsqueeze(0)
    mask = Mask(keys, keys, paddle.ones([1, 5], "bool"), True)
    restricted = mask.restricted("even", even_distance)
    restricted.add_to(paddle.zeros([1, 2, 5, 5]))
    held = [weakref.ref(part) for part in (mask, restricted, mask._visible, restricted._visible)]
    gc.disable()
    try:
        del mask, restricted
        assert [part() for part in held] == [None] * 4
    finally:
        gc.enable()
