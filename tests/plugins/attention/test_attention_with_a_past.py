"""Attentions of a decoder alone: how large their past is."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.attention.forgetting import Forgetting
from paddle_tfm_plugins.attention.gated_deltanet import GatedDeltaNet
from paddle_tfm_plugins.attention.kimi_delta import KimiDelta

B, T, C, H = 3, 6, 8, 2
SITE = LayerSite("decoder", "self", 0, 0, 1)
MAKERS = {
    "forgetting": lambda: Forgetting(d_model=C, num_heads=H, dropout=0.0, site=SITE),
    "gated_deltanet": lambda: GatedDeltaNet(C, H, site=SITE),
    "gated_deltanet without reach": lambda: GatedDeltaNet(C, H, site=SITE, kernel=1, expand=1),
    "kimi_delta": lambda: KimiDelta(C, H, site=SITE),
}
every = pytest.mark.parametrize("name", MAKERS)


def make(name, dtype="float32"):
    attention, rng = MAKERS[name](), np.random.default_rng(0)
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.5, parameter.shape).astype(dtype))
    return attention


def info(x, start=0, valid=None):
    positions = paddle.arange(start, start + x.shape[1]).unsqueeze(0)
    valid = paddle.ones(x.shape[:2], "bool") if valid is None else valid
    return TokenInfo(PositionalEncoding(), positions, valid)


def text(seed=1, dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=(B, T, C)).astype(dtype))


@every
def test_a_memory_of_a_fixed_size_does_not_grow(name):
    """Forgetting attention keeps all keys; the memory of Gated DeltaNet has one size after any number of tokens."""
    attention, x, sizes = make(name), text(), []
    state = attention.project(x[:, :1], info(x[:, :1]))
    for t in range(1, T):
        state = state.extend(attention.project(x[:, t : t + 1], info(x[:, t : t + 1], t)))
        parts = state.last if name != "forgetting" else (state.key, state.value)
        sizes.append(sum(part.size for part in parts))
    assert len(set(sizes)) == (T - 1 if name == "forgetting" else 1)


@pytest.mark.parametrize("name", ["gated_deltanet", "kimi_delta"])
def test_a_long_text_is_read_at_once_as_token_by_token(float64, name):
    """Also where it is longer than what kimi_delta reads at once, and where a channel forgets all in a few tokens."""
    attention = make(name, "float64")
    x = paddle.to_tensor(np.random.default_rng(1).normal(0, 3, (B, 40, C)))
    at_once, state = attention.project(x, info(x)).read(), attention.project(x[:, :1], info(x[:, :1]))
    for t in range(1, x.shape[1]):
        state = state.extend(attention.project(x[:, t : t + 1], info(x[:, t : t + 1], t)))
        np.testing.assert_allclose(state.outputs[:, :, 0], at_once.outputs[:, :, t], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.last[0], at_once.last[0], rtol=1e-9, atol=1e-12)
