"""One softmax minus another: what cancels, what is left, and how large it is."""

import math

import numpy as np
import paddle
import pytest

from paddle_tfm.errors import RecipeError
from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import KeyValue, LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.differential import Differential
from paddle_tfm_plugins.attention.multihead import MultiHead

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


def tensor(length, seed, dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=(B, length, C)).astype(dtype))


def run(attention, x, source, kv=None, tap=None, encoding=None):
    encoding = encoding or PositionalEncoding()
    here = TokenInfo(encoding, paddle.arange(x.shape[1]).unsqueeze(0), paddle.ones(x.shape[:2], "bool"))
    there = TokenInfo(encoding, paddle.arange(S).unsqueeze(0), paddle.to_tensor([[1] * S, [1, 0, 1, 1, 0]], "bool"))
    kv = attention.project(source, there) if kv is None else kv
    return attention(x, kv, here, Mask(here.positions, there.positions, there.valid, False, encoding), tap or Tap())


def test_it_has_the_matrices_of_multihead_and_six_vectors_of_a_heads_width():
    ours, plain = (
        {name: tuple(value.shape) for name, value in attention.state_dict().items()}
        for attention in (made(), MultiHead(C, H, 0.0))
    )
    vectors = {name: shape for name, shape in ours.items() if name not in plain}
    assert {name: shape for name, shape in ours.items() if name in plain} == plain
    assert vectors == {
        "lambda_q1": (D,),
        "lambda_k1": (D,),
        "lambda_q2": (D,),
        "lambda_k2": (D,),
        "head_norm.weight": (2 * D,),
    }


def test_the_cache_has_the_size_of_multiheads():
    here = TokenInfo(PositionalEncoding(), paddle.arange(S).unsqueeze(0), paddle.ones([B, S], "bool"))
    kv, plain = (attention.project(tensor(S, 1), here) for attention in (made(), MultiHead(C, H, 0.0)))
    assert tuple(kv.key.shape) == (B, H, S, D) and tuple(kv.value.shape) == (B, H // 2, S, 2 * D)
    assert kv.key.size + kv.value.size == plain.key.size + plain.value.size


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.3, 1.0, 1.6])
def test_the_weights_of_a_query_sum_to_one_minus_lambda(value):
    attention, tap = made(), Tap(recording=True)
    let_lambda_be(attention, value)
    run(attention, tensor(T, 1), tensor(S, 2), tap=tap)
    ((name, weights),) = tap.recorded
    assert name.endswith("attention") and tuple(weights.shape) == (B, H // 2, T, S)
    np.testing.assert_allclose(weights.numpy().sum(-1), 1 - value, atol=1e-5)


def test_what_both_softmaxes_agree_on_cancels():
    """The same queries and keys twice, and λ = 1: nothing is left but the output's bias."""
    attention = made()
    let_lambda_be(attention, 1.0)
    for layer in (attention.query, attention.key):
        for parameter in (layer.weight, layer.bias):
            halves = parameter.numpy().reshape(*parameter.shape[:-1], H // 2, 2, D)
            halves[..., 1, :] = halves[..., 0, :]
            parameter.set_value(halves.reshape(parameter.shape))
    out = run(attention, tensor(T, 1), tensor(S, 2)).numpy()
    np.testing.assert_allclose(out, np.broadcast_to(attention.output.bias.numpy(), out.shape), atol=1e-3)
    let_lambda_be(attention, 0.5)
    assert np.abs(run(attention, tensor(T, 1), tensor(S, 2)).numpy() - attention.output.bias.numpy()).max() > 0.1


def test_with_nothing_subtracted_the_weights_are_those_of_the_first_softmaxes():
    attention, plain, tap, other = made(), MultiHead(C, H, 0.0), Tap(recording=True), Tap(recording=True)
    let_lambda_be(attention, 0.0)
    for name in ("query", "key", "value"):
        for which in ("weight", "bias"):
            getattr(getattr(plain, name), which).set_value(getattr(getattr(attention, name), which))
    run(attention, tensor(T, 1), tensor(S, 2), tap=tap)
    run(plain, tensor(T, 1), tensor(S, 2), tap=other)
    first = other.recorded[0][1].numpy()[:, 0::2]
    np.testing.assert_allclose(tap.recorded[0][1].numpy(), first, rtol=1e-4, atol=1e-6)


def test_a_head_leaves_with_the_size_that_the_layer_sets():
    """Its root mean square is 1 − λ₀ while the norm's weight is 1, however large the values are."""
    attention = made()
    for name, parameter in attention.named_parameters():
        if name.startswith("output"):
            parameter.set_value(paddle.eye(C) if parameter.ndim == 2 else paddle.zeros([C]))
    attention.head_norm.weight.set_value(paddle.ones([2 * D]))
    for times in (1.0, 1000.0):
        there = TokenInfo(PositionalEncoding(), paddle.arange(S).unsqueeze(0), paddle.ones([B, S], "bool"))
        kv = attention.project(tensor(S, 2), there)
        out = run(attention, tensor(T, 1), None, KeyValue(kv.key, kv.value * times)).numpy()
        size = np.sqrt((out.reshape(B, T, H // 2, 2 * D) ** 2).mean(-1))
        np.testing.assert_allclose(size, 0.6 * math.exp(-0.3) + 0.2, rtol=1e-3)


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


def test_first_values_are_a_function_of_the_seed_and_small(make_model):
    def vectors(seed):
        chosen = ["model.attention=differential", "model.d_model=512", "model.num_heads=4"]
        model = make_model(*chosen, seed=seed)
        return {name: value.numpy() for name, value in model.named_parameters() if "lambda" in name}

    first, again, other = vectors(3), vectors(3), vectors(4)
    assert all((first[name] == again[name]).all() for name in first)
    assert not any((first[name] == other[name]).any() for name in first)
    together = np.concatenate(list(first.values()))
    assert len(np.unique(together)) == len(together)  # no two layers, and no two vectors of one, were drawn alike
    assert abs(together.std() - 0.1) < 0.01 and abs(together.mean()) < 0.01


def test_encodings(make_model):
    """Terms on the values are half as wide as a head's: refused, by name. Whatever acts before the softmax is taken."""
    with pytest.raises(RecipeError, match="'shaw' acts through values, which attention 'differential' does not"):
        make_model("model.attention=differential", "model.position={name: shaw, clip: 2}")
    for position in ("{name: shaw, clip: 2, with_values: false}", "rotary", "alibi"):
        make_model("model.attention=differential", f"model.position={position}")


def test_gradients(float64, assert_gradients):
    class Slopes(PositionalEncoding):
        """A bias of its own for each softmax."""

        def bias(self, q_positions, k_positions):
            apart = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)
            return -apart.astype("float64") * paddle.to_tensor([[[[0.1]], [[0.4]]]])

    attention, encoding = Differential(d_model=4, num_heads=2, dropout=0.0, site=SITE), Slopes()
    x, source = (tensor(length, length, "float64")[:, :, :4] for length in (3, S))
    assert_gradients(lambda: run(attention, x, source, encoding=encoding), x, source, *attention.parameters())
