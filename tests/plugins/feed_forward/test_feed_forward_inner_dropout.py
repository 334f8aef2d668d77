"""What `inner_dropout` does in networks of two layers, with a gate, and of experts."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.feed_forward.mixture_of_experts import MixtureOfExperts
from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.feed_forward.swiglu import SwiGLU


def at(x, valid=None):
    positions = paddle.arange(x.shape[1]).unsqueeze(0)
    return TokenInfo(PositionalEncoding(), positions, paddle.ones(x.shape[:2], "bool") if valid is None else valid)


@pytest.mark.parametrize("cls", [ReLU, SwiGLU, MixtureOfExperts])
def test_inner_dropout_falls_on_the_hidden_layer(cls):
    """Of a hidden layer of ten equal values a dropout of a half leaves a binomial number, doubled."""
    paddle.seed(0)
    feed_forward = cls(d_model=1, d_ff=10, bias=False, inner_dropout=0.5)
    for parameter in feed_forward.parameters():
        parameter.set_value(paddle.ones_like(parameter))
    x = paddle.ones([50, 1, 1])
    feed_forward.eval()
    full = feed_forward(x, at(x), Tap()).numpy()
    np.testing.assert_allclose(full, full[0, 0, 0], rtol=1e-6)
    feed_forward.train()
    kept = feed_forward(x, at(x), Tap()).numpy() / full * 10 / 2
    if cls is MixtureOfExperts:
        kept = kept * 2  # the mean of two experts
    np.testing.assert_allclose(kept, np.round(kept), atol=1e-4)
    assert len(np.unique(np.round(kept))) > 3
