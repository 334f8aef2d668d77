"""The pointer network: positions of the source, and nothing else."""

import numpy as np
import paddle
import pytest

from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.pointer_network import PointerNetwork

C, V, B, T, S, PAD = 5, 9, 2, 3, 6, 0
IDS = np.array([[7, V, 7, EOS, 0, 0], [V, 5, V + 1, 8, 4, EOS]])
VALID = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], bool)


def make(**options):
    head, rng = PointerNetwork(C, options.pop("vocab_size", V), PAD, **options), np.random.default_rng(0)
    for parameter in head.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype(parameter.numpy().dtype))
    return head


def memory(extra=2, valid=VALID, ids=IDS, dtype="float32"):
    x = np.random.default_rng(1).normal(size=(*ids.shape, C)).astype(dtype)
    positions = paddle.arange(ids.shape[1]).unsqueeze(0)
    return Memory(paddle.to_tensor(x), positions, paddle.to_tensor(valid), paddle.to_tensor(ids), extra)


def states(dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(2).normal(size=(B, T, C)).astype(dtype))


def pointed(head, there):
    """p(s) by hand."""
    w = {name: value.numpy() for name, value in head.state_dict().items()}
    pairs = np.tanh(
        (there.x.numpy() @ w["memory.weight"])[:, None] + (states().numpy() @ w["state.weight"])[:, :, None]
    )
    scores = np.where(there.valid.numpy()[:, None], (pairs @ w["score.weight"])[..., 0], -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_positions_are_those_of_real_tokens_and_not_of_columns():
    """A source with a hole: its tokens are the 0th, 1st and 2nd, whatever the columns."""
    ids, valid = np.array([[7, 0, 8, EOS], [7, 8, EOS, 0]]), np.array([[1, 0, 1, 1], [1, 1, 1, 0]], bool)
    a, b = memory(0, valid, ids), memory(0, valid, ids)
    x = a.x.numpy()
    x[1, :3] = x[0, [0, 2, 3]]
    a, b = (Memory(paddle.to_tensor(x), m.positions, m.valid, m.copy_ids) for m in (a, b))
    h = states()[:1].expand([2, T, C])
    log_p = make(output="position").log_probs(h, a).numpy()
    np.testing.assert_allclose(log_p[0], log_p[1], rtol=1e-5)
    assert np.exp(log_p[0][:, [4, 5, EOS]]).sum(-1) == pytest.approx(1.0, abs=1e-5)


def test_positions_beyond_the_vocabulary_cannot_be_pointed_at():
    head = make(output="position", vocab_size=6)
    p = np.exp(head.log_probs(states(), memory()).numpy())
    a = pointed(make(), memory())[1][:, [0, 1, 5]]
    np.testing.assert_allclose(p[1][:, [4, 5, EOS]], a / a.sum(-1, keepdims=True), rtol=1e-5)
    assert p.shape == (B, T, 6)


def test_what_is_nowhere_in_the_source_is_improbable_finite_and_without_a_gradient():
    head, h = make(), states()
    h.stop_gradient = False
    loss = head.loss(h, paddle.full([B, T], 6, "int64"), memory())
    loss.sum().backward()
    np.testing.assert_allclose(loss.numpy(), -np.log(1e-30), rtol=1e-5)
    assert not h.grad.numpy().any()
