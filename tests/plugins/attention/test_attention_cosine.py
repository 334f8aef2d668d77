"""Scores that are cosines times a number: what bounds them."""

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


def test_zeros_stay_zeros_and_finite():
    x = paddle.zeros([2, 3])
    x.stop_gradient = False
    out = unit(x)
    out.sum().backward()
    assert (out.numpy() == 0).all() and np.isfinite(x.grad.numpy()).all()
