"""A gate on what was looked up: open, half open, shut."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.gated import Gated
from paddle_tfm_plugins.attention.multihead import MultiHead

B, T, S, C, H = 2, 4, 5, 6, 2


def made(cls=Gated, **more):
    options = {"bias": True, **more}
    attention, rng = cls(d_model=C, num_heads=H, dropout=0.0, **options), np.random.default_rng(0)
    for name, parameter in attention.named_parameters():
        drawn = rng.normal(0, 0.7, parameter.shape)
        parameter.set_value((drawn * ("gate" not in name)).astype(parameter.numpy().dtype))
    return attention


def tensor(length, seed, dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=(B, length, C)).astype(dtype))


def run(attention, x, source, kv=None):
    here, there = (
        TokenInfo(PositionalEncoding(), paddle.arange(t.shape[1]).unsqueeze(0), paddle.ones(t.shape[:2], "bool"))
        for t in (x, source)
    )
    kv = attention.project(source, there) if kv is None else kv
    return attention(x, kv, here, Mask(here.positions, there.positions, there.valid, False), Tap())


@pytest.mark.parametrize("bias, open_", [(0.0, 0.5), (40.0, 1.0), (-200.0, 0.0), (np.log(3.0), 0.75)])
def test_a_constant_gate_scales_what_multihead_looked_up(bias, open_):
    """σ(0) = 1/2, σ(log 3) = 3/4; shut, only the output's bias is left."""
    gated, plain, x, source = made(), made(MultiHead), tensor(T, 1), tensor(S, 2)
    gated.gate.bias.set_value(np.full([C], bias, "float32"))
    rest = plain.output.bias.numpy()
    expected = rest + open_ * (run(plain, x, source).numpy() - rest)
    np.testing.assert_allclose(run(gated, x, source).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_each_channel_of_each_head_has_a_gate_of_its_own():
    gated, x, source = made(), tensor(T, 1), tensor(S, 2)
    gated.output.weight.set_value(paddle.eye(C))
    gated.output.bias.set_value(paddle.zeros([C]))
    for c in range(C):
        bias = np.full([C], -200.0, "float32")
        bias[c] = 200.0
        gated.gate.bias.set_value(bias)
        assert (np.abs(run(gated, x, source).numpy()).max((0, 1)) > 1e-3).tolist() == (np.arange(C) == c).tolist()


def test_a_head_may_have_one_gate():
    """The authors' head-wise form: as a gate for each channel whose columns are alike within a head."""
    by_head, by_channel, x, source = made(per_head=True), made(), tensor(T, 1), tensor(S, 2)
    assert by_head.gate.weight.shape == [C, H]
    weight = np.random.default_rng(4).normal(size=(C, H)).astype("float32")
    by_head.gate.weight.set_value(weight)
    by_channel.gate.weight.set_value(np.repeat(weight, C // H, 1))
    np.testing.assert_allclose(
        run(by_head, x, source).numpy(), run(by_channel, x, source).numpy(), rtol=1e-5, atol=1e-6
    )


def test_there_are_no_biases_unless_asked_for():
    assert all("bias" not in name for name, _ in Gated(d_model=C, num_heads=H, dropout=0.0).named_parameters())


def test_the_gate_belongs_to_who_asks_and_not_to_what_is_asked():
    """With one key the weights are 1 and the output is σ(x W_g) ⊗ v: a function of x, and linear in v."""
    gated, x, source = made(bias=False), tensor(T, 1), tensor(1, 2)
    rng = np.random.default_rng(4)
    gated.gate.weight.set_value(rng.normal(size=(C, C)).astype("float32"))
    gated.output.weight.set_value(paddle.eye(C))
    gate = 1 / (1 + np.exp(-x.numpy() @ gated.gate.weight.numpy()))
    for times in (1.0, -3.0):
        expected = gate * (times * source.numpy() @ gated.value.weight.numpy())
        np.testing.assert_allclose(run(gated, x, times * source).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_it_is_linear_in_the_values():
    gated, x, source = made(bias=False), tensor(T, 1), tensor(S, 2)
    gated.gate.weight.set_value(np.random.default_rng(4).normal(size=(C, C)).astype("float32"))
    there = TokenInfo(PositionalEncoding(), paddle.arange(S).unsqueeze(0), paddle.ones([B, S], "bool"))
    kv = gated.project(source, there)
    before, after = (run(gated, x, source, KeyValue(kv.key, kv.value * times)) for times in (1.0, -2.5))
    np.testing.assert_allclose(after.numpy(), -2.5 * before.numpy(), rtol=1e-4, atol=1e-5)


def test_it_has_one_matrix_more_than_multihead():
    def shapes(cls):
        return {
            name: tuple(value.shape)
            for name, value in cls(d_model=C, num_heads=H, dropout=0.0, head_dim=5, bias=True).state_dict().items()
        }

    assert shapes(Gated) == shapes(MultiHead) | {"gate.weight": (C, 10), "gate.bias": (10,)}


def test_gradients(float64, assert_gradients):
    gated = Gated(d_model=4, num_heads=2, dropout=0.0)
    x, source = (tensor(length, length, "float64")[:, :, :4] for length in (3, S))
    assert_gradients(lambda: run(gated, x, source), x, source, *gated.parameters())
