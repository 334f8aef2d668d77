"""Heads that mix scores and weights: where they start, and what is dropped."""

import numpy as np
import paddle

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.attention.talking_heads import TalkingHeads

B, T, C, H = 2, 5, 6, 3


def made(cls=TalkingHeads, seed=0, mix=True):
    attention, rng = cls(d_model=C, num_heads=H, dropout=0.0), np.random.default_rng(seed)
    for name, parameter in attention.named_parameters():
        if mix or not name.startswith("mix"):
            parameter.set_value(rng.normal(0, 0.7, parameter.shape).astype(parameter.numpy().dtype))
    return attention


def run(attention, encoding=None, causal=False, tap=None, x=None):
    encoding = encoding or PositionalEncoding()
    x = paddle.to_tensor(np.random.default_rng(5).normal(size=(B, T, C)).astype("float32")) if x is None else x
    here = TokenInfo(encoding, paddle.arange(T).unsqueeze(0), paddle.to_tensor([[1] * T, [1, 1, 0, 1, 0]], "bool"))
    mask = Mask(here.positions, here.positions, here.valid, causal, encoding)
    return attention(x, attention.project(x, here), here, mask, tap or Tap())


def test_it_starts_as_multihead():
    plain = made(MultiHead)
    talking = TalkingHeads(d_model=C, num_heads=H, dropout=0.0)
    assert set(talking.state_dict()) - set(plain.state_dict()) == {"mix_scores", "mix_weights"}
    for name, parameter in plain.named_parameters():
        dict(talking.named_parameters())[name].set_value(parameter)
    np.testing.assert_array_equal(run(talking, causal=True).numpy(), run(plain, causal=True).numpy())


def test_a_recipes_initializer_leaves_the_identity(make_model):
    model = make_model("model.attention=talking_heads")
    matrices = [value.numpy() for name, value in model.named_parameters() if "mix_" in name]
    assert len(matrices) == 2 * sum(
        1 + (layer.cross_attention is not None) for layer in [*model.encoder.layers, *model.decoder.layers]
    )
    assert all((matrix == np.eye(2)).all() for matrix in matrices)


def test_dropout_falls_on_the_mixed_weights():
    """Values are ones: a head's output is the sum of the weights that were kept, each 0 or twice what was observed."""
    paddle.seed(3)
    attention, tap = TalkingHeads(d_model=2, num_heads=2, dropout=0.5, bias=False), Tap(recording=True)
    attention.mix_weights.set_value(paddle.to_tensor([[2.0, 1.0], [1.0, 2.0]]))
    x, valid = paddle.ones([64, 1, 2]), paddle.ones([64, 1], "bool")
    for layer in (attention.value, attention.output):
        layer.weight.set_value(paddle.eye(2))
    here = TokenInfo(PositionalEncoding(), paddle.zeros([1, 1], "int64"), valid)
    attention.train()
    out = attention(x, attention.project(x, here), here, Mask(here.positions, here.positions, valid, False), tap)
    assert (tap.recorded[0][1].numpy() == 3.0).all()
    assert set(np.unique(out.numpy())) == {0.0, 6.0}
