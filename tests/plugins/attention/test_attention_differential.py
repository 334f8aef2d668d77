"""One softmax minus another: what is dropped."""

import math

import numpy as np
import paddle
import pytest

from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.differential import Differential

B, T, S, C, H = 2, 4, 5, 8, 4
D = C // H
SITE = LayerSite("decoder", "cross", 1, 2, 2)


def made(**more):
    options = {"bias": True, **more}
    attention, rng = Differential(d_model=C, num_heads=H, dropout=0.0, site=SITE, **options), np.random.default_rng(0)
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.7, parameter.shape).astype(parameter.numpy().dtype))
    return attention


def let_lambda_be(attention, value):
    """Vectors for which exp(a₁ · b₁) − exp(a₂ · b₂) + λ₀ is `value`."""
    for vector in (attention.lambda_q1, attention.lambda_k1, attention.lambda_q2, attention.lambda_k2):
        vector.set_value(paddle.ones_like(vector))
    wanted = value - attention.lambda_init  # e^s − 1 with s = log(1 + wanted), or 1 − e^s
    first, second = (math.log1p(wanted), 0.0) if wanted > 0 else (0.0, math.log1p(-wanted))
    attention.lambda_q1.set_value(paddle.full_like(attention.lambda_q1, first / D))
    attention.lambda_q2.set_value(paddle.full_like(attention.lambda_q2, second / D))
    assert attention.subtracted().item() == pytest.approx(value, abs=1e-6)


def test_dropout_falls_on_the_difference():
    """With one key and the norm of each head, a head is what it was, or nothing; were the softmaxes dropped one by one,
    it would change its sign where only the first is gone."""
    attention, x, valid = made(bias=False), paddle.ones([64, 1, C]), paddle.ones([64, 1], "bool")
    let_lambda_be(attention, 0.6)
    attention.output.weight.set_value(paddle.eye(C))
    attention.dropout = Dropout(0.5)
    here = TokenInfo(PositionalEncoding(), paddle.zeros([1, 1], "int64"), valid)
    kv, mask = attention.project(x, here), Mask(here.positions, here.positions, valid, False)
    attention.eval()
    whole = attention(x, kv, here, mask, Tap()).numpy().reshape(-1, 2 * D)
    paddle.seed(3)
    attention.train()
    heads = attention(x, kv, here, mask, Tap()).numpy().reshape(-1, 2 * D)
    gone = (heads == 0).all(-1)
    assert 0 < gone.sum() < len(gone)
    np.testing.assert_allclose(heads[~gone], whole[~gone], rtol=1e-2)
