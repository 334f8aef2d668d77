"""One head against its formula."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Geometry, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.single_head import SingleHead

rng = np.random.default_rng(0)


@pytest.mark.parametrize("size", [None, 3, 16])
def test_it_is_the_formula_without_an_output_projection(size):
    attention = SingleHead(6, 0.0, head_size=size)
    x = rng.normal(size=(2, 4, 6)).astype("float32")
    q, k, v = (x @ layer.weight.numpy() for layer in (attention.query, attention.key, attention.value))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(size or 6)
    scores = np.where(np.tri(4, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v

    here = TokenInfo(PositionalEncoding(), paddle.arange(4).unsqueeze(0), paddle.ones([2, 4], "bool"))
    mask = Mask(here.positions, here.positions, here.valid, True)
    out = attention(paddle.to_tensor(x), attention.project(paddle.to_tensor(x), here), here, mask, Tap())
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert set(attention.state_dict()) == {"query.weight", "key.weight", "value.weight"}
    assert SingleHead.geometry(6, 4, head_size=size) == Geometry(1, 1, size or 6)


def test_it_refuses_terms_on_the_values_and_has_no_place_for_an_inner_norm():
    assert SingleHead.supports == {"embed", "rotate", "bias", "scores"}
    with pytest.raises(TypeError):
        SingleHead(6, 0.0, inner_norm=lambda width: None)
