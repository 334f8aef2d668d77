"""Heads that mix scores and weights, against loops; where they start, and that masked keys stay masked."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.attention.talking_heads import TalkingHeads

B, T, C, H = 2, 5, 6, 3
D = C // H


class EveryWay(PositionalEncoding):
    """A term on the scores, a bias and a term on the values, different for each head where they can be."""

    def scores(self, q, k, q_positions, k_positions):
        return paddle.matmul(q.flip([3]), k, transpose_y=True)

    def bias(self, q_positions, k_positions):
        apart = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)  # [1, 1, T, T]
        return -apart.astype("float32") * paddle.to_tensor([0.1, 0.5, 1.0]).reshape([1, H, 1, 1])

    def values(self, weights, q_positions, k_positions):
        gathered = (weights * k_positions.astype(weights.dtype).unsqueeze([1, 2])).sum(-1, keepdim=True)
        return gathered.expand([*weights.shape[:3], D])


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


@pytest.mark.parametrize("encoding", [PositionalEncoding(), EveryWay()], ids=["none", "every way"])
@pytest.mark.parametrize("causal", [True, False])
def test_it_is_the_formula(encoding, causal):
    """Terms on the scores are mixed with them, a bias comes after the mixing, terms on values have the mixed weights."""
    attention, acts = made(), isinstance(encoding, EveryWay)
    x = np.random.default_rng(5).normal(size=(B, T, C)).astype("float32")
    w = {name: value.numpy() for name, value in attention.named_parameters()}
    q, k, v = ((x @ w[f"{name}.weight"] + w[f"{name}.bias"]).reshape(B, T, H, D) for name in ("query", "key", "value"))
    valid, context = np.array([[1] * T, [1, 1, 0, 1, 0]], bool), np.zeros([B, T, H, D])
    for b, i in np.ndindex(B, T):
        keys = [j for j in range(T) if valid[b, j] and (j <= i or not causal)]
        scores = np.array([[q[b, i, h] @ k[b, j, h] for j in keys] for h in range(H)])
        if acts:
            scores = scores + [[q[b, i, h, ::-1] @ k[b, j, h] for j in keys] for h in range(H)]
        scores = w["mix_scores"].T @ scores / np.sqrt(D)
        if acts:
            scores = scores - np.array([[abs(i - j) * slope for j in keys] for slope in (0.1, 0.5, 1.0)])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = w["mix_weights"].T @ (weights / weights.sum(-1, keepdims=True))
        for h in range(H):
            context[b, i, h] = weights[h] @ v[b, keys, h] + (weights[h] @ keys if acts else 0)
    expected = context.reshape(B, T, C) @ w["output.weight"] + w["output.bias"]
    np.testing.assert_allclose(run(attention, encoding, causal).numpy(), expected, rtol=1e-4, atol=1e-4)


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


def test_heads_that_change_places_and_come_back_are_multihead():
    """P a permutation and R its inverse: each head's weights pass through another head and return."""
    plain, talking = made(MultiHead), made()
    for name, parameter in plain.named_parameters():
        dict(talking.named_parameters())[name].set_value(parameter)
    turn = np.eye(H, dtype="float32")[[1, 2, 0]]
    talking.mix_scores.set_value(turn)
    talking.mix_weights.set_value(turn)
    assert np.abs(run(talking).numpy() - run(plain).numpy()).max() > 1e-2
    talking.mix_weights.set_value(turn.T)
    np.testing.assert_allclose(run(talking).numpy(), run(plain).numpy(), rtol=1e-4, atol=1e-5)


def test_masked_keys_stay_masked_and_weights_are_what_they_are():
    """Whatever the matrices; the observed weights of a head are its sums over softmaxes, each of which sums to 1."""
    attention, tap = made(seed=3), Tap(recording=True)
    attention.mix_scores.set_value(-5 * attention.mix_scores.detach())
    attention.mix_weights.set_value(50 * attention.mix_weights.detach())
    run(attention, causal=True, tap=tap)
    ((_, weights),) = tap.recorded
    allowed = np.tri(T, dtype=bool) & np.array([[1] * T, [1, 1, 0, 1, 0]], bool)[:, None]  # [B, T, T]
    hidden = np.broadcast_to(~allowed[:, None], weights.shape)
    assert np.abs(weights.numpy()[hidden]).max() < 1e-20
    totals = np.broadcast_to(attention.mix_weights.numpy().sum(0)[:, None], [B, H, T])
    np.testing.assert_allclose(weights.numpy().sum(-1), totals, rtol=1e-4, atol=1e-4)


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


def test_gradients(float64, assert_gradients):
    attention = made()
    x = paddle.to_tensor(np.random.default_rng(5).normal(size=(B, T, C)))
    assert_gradients(lambda: run(attention, causal=True, x=x), x, *attention.parameters())
