"""ReZero: no norm, gates that start closed, and in which order they open."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.placement.rezero import ReZero

SITES = [LayerSite("decoder", name, 0, 1, 1) for name in ("self", "cross", "feed_forward")]
HERE = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.ones([1, 2], "bool"))


def no_norm(site, width):
    raise AssertionError("a norm was asked for")


def make(**options):
    return ReZero(sites=SITES, norm=no_norm, d_model=4, dropout=0.0, **options)


@pytest.mark.parametrize(("options", "gates"), [({}, 1), ({"share_gate": True}, 1), ({"share_gate": False}, 3)])
def test_it_has_gates_of_zero_and_nothing_else(options, gates):
    state = make(**options).state_dict()
    assert list(state) == [f"gates.{i}" for i in range(gates)]
    for gate in state.values():
        assert gate.shape == [1] and gate.item() == 0.0 and gate.keep_initial


def test_a_layer_begins_as_the_identity():
    x = paddle.randn([1, 2, 4])
    np.testing.assert_array_equal(make()(x, [lambda y: y * 7.0] * 3, HERE).numpy(), x.numpy())


@pytest.mark.parametrize("share", [True, False])
def test_each_branch_goes_through_its_gate(share):
    placement = make(share_gate=share)
    for gate, value in zip(placement.gates, (0.5, 0.25, 2.0)):
        gate.set_value(paddle.full([1], value))
    out = placement(paddle.ones([1, 2, 4]), [lambda y: y * 2.0] * 3, HERE)
    expected = 2.0 * 2.0 * 2.0 if share else 2.0 * 1.5 * 5.0
    np.testing.assert_allclose(out.numpy(), np.full([1, 2, 4], expected), rtol=1e-6)


@pytest.mark.parametrize("share", [True, False])
def test_gradients_by_finite_differences(float64, assert_gradients, share):
    placement, rng = make(share_gate=share), np.random.default_rng(1)
    matrices = [paddle.to_tensor(rng.normal(size=(4, 4))) for _ in SITES]
    x = paddle.to_tensor(rng.normal(size=(1, 2, 4)))
    for gate in placement.gates:
        gate.set_value(rng.normal(size=[1]))
    parts = [lambda y, matrix=matrix: paddle.tanh(paddle.matmul(y, matrix)) for matrix in matrices]
    assert_gradients(lambda: placement(x, parts, HERE), x, *placement.parameters(), *matrices)


def alive(model, batch):
    """Where gradients are: the parts of the stacks, as (stack, whether they are gates)."""
    model.clear_gradients()
    model.loss(batch).backward()
    return {
        (name.split(".")[0], "gates" in name)
        for name, p in model.named_parameters()
        if ".layers." in name and p.grad is not None and p.grad.numpy().any()
    }


def test_gates_open_from_the_decoder_to_the_encoder_and_then_everything_learns(make_model, make_batch):
    """While the decoder's gates are closed nothing of the encoder reaches the output, not even through its gates."""
    model, batch = make_model("model.placement=rezero"), make_batch()
    alive_by_step = []
    for _ in range(3):
        alive_by_step.append(alive(model, batch))
        for name, parameter in model.named_parameters():
            if "gates" in name:
                parameter.set_value(parameter.detach() - 1e-2 * parameter.grad)
    decoder = {("decoder", True)}
    more = {*decoder, ("decoder", False), ("encoder", True)}
    assert alive_by_step == [decoder, more, {*more, ("encoder", False)}]


def test_gates_stay_at_zero_whatever_the_initializer_and_the_stack_has_no_norm(make_model):
    model = make_model("model.placement=rezero", "model.initializer={name: normal, std: 1.0}")
    gates = [parameter for name, parameter in model.named_parameters() if "gates" in name]
    assert len(gates) == 4 and all(gate.item() == 0.0 for gate in gates)
    assert not any("norm" in name for name in model.state_dict())


def test_it_declares_that_its_output_is_not_normalized():
    """With the gate open the output grows with the branch, where any placement with a norm holds it."""
    assert set(ReZero.expected_failures) == {"output_normalized"}
    placement, x = make(), paddle.ones([1, 2, 4])
    placement.gates[0].set_value(paddle.ones([1]))
    out = placement(x, [lambda y: 100.0 * paddle.ones_like(y)] * 3, HERE)
    np.testing.assert_allclose(out.numpy(), np.full([1, 2, 4], 301.0))
