"""ReZero: no norm, gates that start closed, and in which order they open."""

import pytest

from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.placement.rezero import ReZero

SITES = [LayerSite("decoder", name, 0, 1, 1) for name in ("self", "cross", "feed_forward")]


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
