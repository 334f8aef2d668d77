"""A window over positions: what the mask costs."""

import numpy as np
import paddle

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.local import Local

C, H = 8, 2
rng = np.random.default_rng(0)


def made(window, cls=Local, **more):
    attention, rng = (
        cls(d_model=C, num_heads=H, dropout=0.0, **more, **({"window": window} if cls is Local else {})),
        np.random.default_rng(1),
    )
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.7, parameter.shape).astype("float32"))
    return attention


def test_layers_that_share_a_mask_share_its_restriction(monkeypatch):
    """One mask a pass: with three layers of one window and one of another, there are two restrictions."""
    calls, restricted = [], Mask.restricted
    monkeypatch.setattr(
        Mask, "restricted", lambda *arguments: calls.append(restricted(*arguments)) or restricted(*arguments)
    )
    x, valid = paddle.zeros([1, 5, C]), paddle.ones([1, 5], "bool")
    info = TokenInfo(PositionalEncoding(), paddle.arange(5).unsqueeze(0), valid)
    mask = Mask(info.positions, info.positions, valid, True)
    for attention in (made(2), made(2), made(3), made(2)):
        attention(x, attention.project(x, info), info, mask, Tap())
    assert [mask is calls[0] for mask in calls] == [True, True, False, True]
