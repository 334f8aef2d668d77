import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm_plugins.position.alibi import ALiBi
from paddle_tfm_plugins.position.chain import Chain
from paddle_tfm_plugins.position.learned import Learned
from paddle_tfm_plugins.position.none import NoPosition
from paddle_tfm_plugins.position.pope import PoPE
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.shaw import Shaw
from paddle_tfm_plugins.position.sinusoidal import Sinusoidal

SITE = LayerSite("encoder", "self", 0, 1, 1)
POSITIONS = paddle.arange(5).unsqueeze(0)


def test_embed_and_rotation_in_turn():
    x = paddle.randn([2, 5, 4])
    first, second = Sinusoidal(4), Learned(4, 8)
    expected = second.embed(first.embed(x, POSITIONS), POSITIONS).numpy()
    np.testing.assert_array_equal(Chain([first, second]).embed(x, POSITIONS).numpy(), expected)
    q, slow, fast = paddle.randn([2, 3, 5, 4]), Rotary(4), Rotary(4, base=10.0)
    chain = Chain([slow, fast])
    for way in ("query", "key"):
        expected = getattr(fast, way)(getattr(slow, way)(q, POSITIONS), POSITIONS).numpy()
        np.testing.assert_array_equal(getattr(chain, way)(q, POSITIONS).numpy(), expected)


class Times(PositionalEncoding):
    """Multiplies positions, and adds a constant to them: an order can be seen."""

    def __init__(self, factor, shift):
        super().__init__()
        self.factor, self.shift = factor, shift

    def remap(self, positions, draw):
        return positions * self.factor + self.shift + draw()


def test_remap_in_turn():
    chain = Chain([Times(2, 1), NoPosition(), Times(3, 0)])
    np.testing.assert_array_equal(chain.remap(POSITIONS, lambda: 1).numpy()[0], (np.arange(5) * 2 + 2) * 3 + 1)


def test_bias_scores_and_values_are_sums():
    q, weights, at = paddle.randn([2, 3, 5, 4]), paddle.rand([2, 3, 5, 5]), (POSITIONS, POSITIONS)
    parts = [ALiBi(3, SITE), Shaw(4), NoPosition(), ALiBi(3, SITE), Shaw(4, clip=2), Shaw(4, with_values=False)]
    chain = Chain(parts)
    np.testing.assert_allclose(chain.bias(*at).numpy(), 2 * parts[0].bias(*at).numpy())
    scores = sum(parts[i].scores(q, q, *at).numpy() for i in (1, 4, 5))
    np.testing.assert_allclose(chain.scores(q, q, *at).numpy(), scores, rtol=1e-5, atol=1e-5)
    values = sum(parts[i].values(weights, *at).numpy() for i in (1, 4))
    np.testing.assert_allclose(chain.values(weights, *at).numpy(), values, rtol=1e-5, atol=1e-5)


def test_parts_that_are_not_per_layer_are_there_once(make_model, make_batch):
    """[learned, shaw]: one table of positions a stack, whatever the depth, and no parameter without a gradient."""
    model, batch = make_model("model.position={name: chain, parts: [learned, shaw, t5]}"), make_batch()
    tables = {name.split("encodings.")[1] for name, _ in model.encoder.named_parameters() if "encodings." in name}
    per_layer = {f"{layer}.parts.1.{side}_table" for layer in (0, 1) for side in ("key", "value")}
    assert tables == {"0.parts.0.weight", "0.parts.2.table"} | per_layer
    model.train()
    model.loss(batch).backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    first, second = model.encoder.encodings
    q = paddle.randn([2, 2, 5, 8])
    np.testing.assert_array_equal(second.bias(POSITIONS, POSITIONS).numpy(), first.bias(POSITIONS, POSITIONS).numpy())
    expected = second.parts[1].scores(q, q, POSITIONS, POSITIONS).numpy()
    np.testing.assert_array_equal(second.scores(q, q, POSITIONS, POSITIONS).numpy(), expected)
    assert second.uses() == first.uses() == {"embed", "bias", "scores", "values"}


def test_what_makes_queries_wider_stands_beside_no_other_turn_or_term_of_the_scores():
    for other in (Rotary(4), Shaw(4)):
        with pytest.raises(ValueError, match="PoPE makes queries and keys wider"):
            Chain([other, PoPE(4, 2)])
    chain = Chain([Sinusoidal(8), PoPE(4, 2), ALiBi(2, SITE)])
    assert chain.query(paddle.randn([2, 2, 5, 4]), POSITIONS).shape == [2, 2, 5, 8]
