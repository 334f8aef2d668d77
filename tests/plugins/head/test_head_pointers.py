"""Heads that point at the source: which position is which piece, and what stands nowhere."""

import numpy as np
import paddle
import pytest

from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.pointer_network import PointerNetwork

C, T = 5, 3


def log_p(x, valid, ids, vocab_size=9):
    """Of one text [S, C], by a head with the weights of each call."""
    head, rng = PointerNetwork(C, vocab_size, 0, output="position"), np.random.default_rng(0)
    for parameter in head.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype("float32"))
    x, valid, ids = (paddle.to_tensor(np.array(each)[None]) for each in (x, np.array(valid, bool), ids))
    h = paddle.to_tensor(rng.normal(size=(1, T, C)).astype("float32"))
    return head.log_probs(h, Memory(x, paddle.arange(ids.shape[1]).unsqueeze(0), valid, ids)).numpy()[0]


def test_positions_are_those_of_real_tokens_and_not_of_columns():
    """A source with a hole: its tokens are the 0th, 1st and 2nd, whatever the columns."""
    x = np.random.default_rng(1).normal(size=(4, C)).astype("float32")
    holed, plain = log_p(x, [1, 0, 1, 1], [7, 0, 8, EOS]), log_p(x[[0, 2, 3]], [1, 1, 1], [7, 8, EOS])
    np.testing.assert_allclose(holed, plain, rtol=1e-5)
    assert np.exp(holed[:, [4, 5, EOS]]).sum(-1) == pytest.approx(1.0, abs=1e-5)


def test_positions_beyond_the_vocabulary_cannot_be_pointed_at():
    x = np.random.default_rng(1).normal(size=(5, C)).astype("float32")
    p = np.exp(log_p(x, [1] * 5, [7, 5, 8, 4, EOS], vocab_size=6))
    whole = np.exp(log_p(x, [1] * 5, [7, 5, 8, 4, EOS]))[:, [4, 5, EOS]]
    assert p.shape == (T, 6)
    np.testing.assert_allclose(p[:, [4, 5, EOS]], whole / whole.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("name", ["pointer", "pointer_coverage", "pointer_network"])
def test_a_target_that_is_nowhere_is_improbable_and_finite(registry, name):
    head, rng = registry.build("head", name, d_model=C, vocab_size=7, pad_id=0), np.random.default_rng(0)
    x, h = (paddle.to_tensor(rng.normal(size=(1, length, C)).astype("float32")) for length in (3, T))
    h.stop_gradient = False
    ids, valid = paddle.to_tensor([[3, 7, EOS]]), paddle.ones([1, 3], "bool")
    loss = head.loss(h, paddle.full([1, T], 8, "int64"), Memory(x, paddle.arange(3).unsqueeze(0), valid, ids, 2), 0.0)
    loss = loss[0] if isinstance(loss, tuple) else loss
    loss.sum().backward()
    assert (loss.numpy() > 50).all() and np.isfinite(loss.numpy()).all() and np.isfinite(h.grad.numpy()).all()
