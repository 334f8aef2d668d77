"""Linear attention: a past of one size, memories that are folded, and rows that see nothing."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.linear import LinearAttention

B, T, C, H = 2, 5, 6, 2
rng = np.random.default_rng(0)


def test_the_past_has_one_size_however_long_it_is():
    attention = LinearAttention(C, H, site=LayerSite("decoder", "self", 0, 1, 1))
    state, sizes = None, []
    for t in range(6):
        here = TokenInfo(PositionalEncoding(), paddle.full([1, 1], t, "int64"), paddle.ones([B, 1], "bool"))
        new = attention.project(paddle.randn([B, 1, C]), here)
        state = new if state is None else state.extend(new)
        sizes.append([tuple(part.shape) for part in (state.key, state.value)])
        if t:
            assert tuple(state.past.outer.shape) == (B, H, 3, 3) and tuple(state.past.key.shape) == (B, H, 1, 3)
    assert all(size == sizes[0] for size in sizes)


def test_a_memory_is_folded_when_it_is_projected():
    attention = LinearAttention(C, H, site=LayerSite("decoder", "cross", 0, 1, 1))
    here = TokenInfo(PositionalEncoding(), paddle.arange(9).unsqueeze(0), paddle.ones([B, 9], "bool"))
    kv = attention.project(paddle.randn([B, 9, C]), here)
    assert tuple(kv.outer.shape) == (B, H, 3, 3)


@pytest.mark.parametrize("causal", [True, False])
def test_a_row_that_sees_nothing_passes_large_gradients_on_as_zeros(causal):
    attention = LinearAttention(C, H, site=LayerSite("decoder", "self" if causal else "cross", 0, 1, 1))
    x = paddle.to_tensor(rng.normal(size=(1, 2, C)).astype("float32"), stop_gradient=False)
    here = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.zeros([1, 2], "bool"))
    mask = Mask(here.positions, here.positions, here.valid, causal)
    (attention(x, attention.project(x, here), here, mask, Tap()) * 1e12).sum().backward()
    for tensor in (x, *(linear.weight for linear in (attention.query, attention.key, attention.value))):
        np.testing.assert_array_equal(tensor.grad.numpy(), 0.0)
