"""A gate on what was looked up: for a channel or a head."""

import numpy as np
import paddle

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.gated import Gated

B, T, S, C, H = 2, 4, 5, 6, 2


def made(cls=Gated, **more):
    options = {"bias": True, **more}
    attention, rng = cls(d_model=C, num_heads=H, dropout=0.0, **options), np.random.default_rng(0)
    for name, parameter in attention.named_parameters():
        drawn = rng.normal(0, 0.7, parameter.shape)
        parameter.set_value((drawn * ("gate" not in name)).astype(parameter.numpy().dtype))
    return attention


def tensor(length, seed, dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=(B, length, C)).astype(dtype))


def run(attention, x, source, kv=None):
    here, there = (
        TokenInfo(PositionalEncoding(), paddle.arange(t.shape[1]).unsqueeze(0), paddle.ones(t.shape[:2], "bool"))
        for t in (x, source)
    )
    kv = attention.project(source, there) if kv is None else kv
    return attention(x, kv, here, Mask(here.positions, there.positions, there.valid, False), Tap())


def test_a_head_may_have_one_gate():
    """The authors' head-wise form: as a gate for each channel whose columns are alike within a head."""
    by_head, by_channel, x, source = made(per_head=True), made(), tensor(T, 1), tensor(S, 2)
    assert by_head.gate.weight.shape == [C, H]
    weight = np.random.default_rng(4).normal(size=(C, H)).astype("float32")
    by_head.gate.weight.set_value(weight)
    by_channel.gate.weight.set_value(np.repeat(weight, C // H, 1))
    np.testing.assert_allclose(
        run(by_head, x, source).numpy(), run(by_channel, x, source).numpy(), rtol=1e-5, atol=1e-6
    )
