"""Scores that are cosines times a number: what bounds them, and what does not change them."""

import math

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.cosine import Cosine, unit
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.position.rotary import Rotary

B, T, C, H = 2, 6, 8, 2


def made(cls=Cosine, **more):
    attention, rng = cls(d_model=C, num_heads=H, dropout=0.0, **more), np.random.default_rng(0)
    for name, parameter in attention.named_parameters():
        if name != "gain":
            parameter.set_value(rng.normal(0, 0.7, parameter.shape).astype(parameter.numpy().dtype))
    return attention


def run(attention, x, source=None, encoding=None, tap=None):
    source, encoding = x if source is None else source, encoding or PositionalEncoding()
    here, there = (
        TokenInfo(encoding, paddle.arange(t.shape[1]).unsqueeze(0), paddle.ones(t.shape[:2], "bool"))
        for t in (x, source)
    )
    mask = Mask(here.positions, there.positions, there.valid, False, encoding)
    return attention(x, attention.project(source, there), here, mask, tap or Tap())


def tensor(seed=1, times=1.0, dtype="float32"):
    return paddle.to_tensor((np.random.default_rng(seed).normal(size=(B, T, C)) * times).astype(dtype))


def spread(attention, x, encoding=None):
    """The largest difference of two scores of a query, read off the weights."""
    tap = Tap(recording=True)
    run(attention, x, encoding=encoding, tap=tap)
    logits = np.log(tap.recorded[0][1].numpy().astype(np.float64))
    return (logits.max(-1) - logits.min(-1)).max()


@pytest.mark.parametrize("encoding", [None, Rotary(C // H)], ids=["none", "rotary"])
@pytest.mark.parametrize("times", [0.01, 1.0, 1e4])
def test_scores_are_bounded_whatever_the_input(times, encoding):
    """|g cos| ≤ g: two scores differ by 2 g at most. The same input drives those of multihead anywhere."""
    attention = made(length=4)
    bound = 2 * math.log2(12)
    assert spread(attention, tensor(times=times), encoding) <= bound + 1e-4
    assert spread(made(MultiHead), tensor(times=1e4), encoding) > bound + 10


def test_cached_keys_have_length_one():
    attention = made()
    x = tensor()
    for encoding in (PositionalEncoding(), Rotary(C // H)):
        here = TokenInfo(encoding, paddle.arange(T).unsqueeze(0), paddle.ones([B, T], "bool"))
        lengths = np.linalg.norm(attention.project(x, here).key.numpy(), axis=-1)
        np.testing.assert_allclose(lengths, 1.0, rtol=1e-5)


def test_the_scale_multiplies_what_an_encoding_adds():
    """softmax(g (q̂ k̂ᵀ + s) + bias)."""

    class Both(PositionalEncoding):
        def scores(self, q, k, q_positions, k_positions):
            np.testing.assert_allclose(np.linalg.norm(q.numpy(), axis=-1), 1.0, rtol=1e-5)
            return q.sum(-1, keepdim=True) * k_positions.astype(q.dtype).unsqueeze([1, 2])

        def bias(self, q_positions, k_positions):
            return -0.3 * k_positions.astype("float32").unsqueeze([1, 2])

    attention, x, tap = made(), tensor(), Tap(recording=True)
    attention.gain.set_value(paddle.to_tensor([1.7]))
    run(attention, x, encoding=Both(), tap=tap)
    q, k = (
        (x.numpy() @ layer.weight.numpy() + layer.bias.numpy()).reshape(B, T, H, -1).transpose(0, 2, 1, 3)
        for layer in (attention.query, attention.key)
    )
    q, k = (rows / np.linalg.norm(rows, axis=-1, keepdims=True) for rows in (q, k))
    at = np.arange(T)
    powers = np.exp(1.7 * (q @ k.transpose(0, 1, 3, 2) + q.sum(-1, keepdims=True) * at) - 0.3 * at)
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(tap.recorded[0][1].numpy(), expected, rtol=1e-4, atol=1e-6)


def test_zeros_stay_zeros_and_finite():
    x = paddle.zeros([2, 3])
    x.stop_gradient = False
    out = unit(x)
    out.sum().backward()
    assert (out.numpy() == 0).all() and np.isfinite(x.grad.numpy()).all()
