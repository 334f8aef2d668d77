"""An LSTM in the place of attention: its two ways of computing, and its state."""

import numpy as np
import paddle
import pytest
from kernels_in_use import in_step

from paddle_tfm.protocols import Geometry, LayerSite, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.attention.recurrent import Carried, Recurrent, lstm

C = 6
plain = lstm.formula
ENCODER, DECODER, CROSS = LayerSite("encoder", "self", 0, 1, 1), LayerSite("decoder", "self", 0, 1, 1), LayerSite("decoder", "cross", 0, 1, 1)  # fmt: skip
rng = np.random.default_rng(0)


def fused(*arguments):
    """By the kernel."""
    with in_step():
        return lstm(*arguments)


def redrawn(layer):
    for parameter in layer.parameters():
        drawn = rng.normal(0, 0.7, parameter.shape)
        parameter.set_value(paddle.to_tensor(drawn.astype(str(parameter.dtype).removeprefix("paddle."))))
    return layer


def made(site, **options):
    return redrawn(Recurrent(C, site=site, **options))


def text(*shape):
    x = paddle.to_tensor(rng.normal(size=shape).astype("float32"))
    x.stop_gradient = False
    return x


def at(x, valid=None, start=0):
    positions = paddle.arange(start, start + x.shape[1]).unsqueeze(0)
    valid = np.ones(x.shape[:2], bool) if valid is None else np.asarray(valid, bool)
    return TokenInfo(PositionalEncoding(), positions, paddle.to_tensor(valid))


# ----------------------------------------------------------------------------------------------------- two ways


@pytest.fixture
def recurrence_inputs(float64):
    """x [T, B, C], lengths (one is 0), a state, and weights: all with gradients."""
    shapes = [(5, 4, C), (4, 3), (4, 3), (12, C), (12, 3), (12,)]
    x, h, c, *weights = (paddle.to_tensor(rng.normal(size=shape), stop_gradient=False) for shape in shapes)
    return x, paddle.to_tensor([5, 2, 0, 4], dtype="int32"), Carried(h, c), *weights


def test_the_kernel_computes_what_the_equations_say(recurrence_inputs):
    x, _, after, *weights = recurrence_inputs
    pull = [paddle.to_tensor(rng.normal(size=shape)) for shape in ((5, 4, 3), (4, 3), (4, 3))]
    results = []
    for run in (plain, fused):
        outputs, last = run(*recurrence_inputs)
        sum((part * noise).sum() for part, noise in zip([outputs, *last], pull)).backward()
        inputs = [x, *after, *weights]
        results.append([part.numpy() for part in (outputs, *last)] + [part.grad.numpy() for part in inputs])
        for part in inputs:
            part.clear_gradient()
        with paddle.no_grad():
            again, _ = run(*recurrence_inputs)
        np.testing.assert_array_equal(again.numpy(), outputs.numpy())
    for ours, expected in zip(*results):
        np.testing.assert_allclose(expected, ours, rtol=1e-10, atol=1e-12)
        assert np.abs(ours).max() > 1e-3


@pytest.mark.parametrize("wanted", range(6))
def test_the_kernel_gives_a_gradient_for_any_one_input_alone(recurrence_inputs, wanted):
    x, _, after, *weights = recurrence_inputs
    one = [x, *after, *weights][wanted]
    expected, ours = (paddle.grad(run(*recurrence_inputs)[0].square().sum(), one)[0].numpy() for run in (plain, fused))
    np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)
    for other in (x, *after, *weights):  # the others frozen
        other.stop_gradient = other is not one
    loss = fused(*recurrence_inputs)[0].square().sum()
    for _ in range(2):
        loss.backward(retain_graph=True)
        np.testing.assert_allclose(one.grad.numpy(), expected, rtol=1e-10, atol=1e-12)
        one.clear_gradient()


# -------------------------------------------------------------------------------------------- order and padding


# -------------------------------------------------------------------------------------------------------- state


def test_the_state_has_one_size_however_long_the_output_is():
    attention, state = made(DECODER, hidden=5), None
    for t in range(6):
        x = text(2, 1, C)
        new = attention.project(x, at(x, start=t))
        state = new if state is None else state.extend(new)
        if t:
            assert [part.shape for part in (*state.last, state.outputs)] == [[2, 5], [2, 5], [2, 1, 5]]


def test_a_longer_text_in_the_encoder_is_read_anew():
    attention, x = made(ENCODER), text(2, 5, C)
    first, second = (attention.project(part, at(part)) for part in (x[:, :2], x[:, 2:]))
    whole, both = attention.project(x, at(x)).read(), first.extend(second).read()
    np.testing.assert_array_equal(both.outputs.numpy(), whole.outputs.numpy())
    assert [part.shape for part in both.last] == [[2, C], [2, C]]
    rows = paddle.to_tensor([1, 1, 0])
    picked = attention.project(x, at(x)).select(rows).read().outputs
    np.testing.assert_allclose(picked.numpy(), whole.outputs.index_select(rows).numpy(), rtol=1e-5, atol=1e-7)


# --------------------------------------------------------------------------------------------- what it is made of


def test_the_halves_of_the_encoder_are_as_wide_together_as_the_decoder():
    assert [tuple(p.shape) for p in Recurrent(C, site=ENCODER).ahead.parameters()] == [(4, 3, 6), (4, 3, 3), (12,)]
    assert [tuple(p.shape) for p in Recurrent(C, site=DECODER).ahead.parameters()] == [(4, 6, 6), (4, 6, 6), (24,)]
    for site in (ENCODER, DECODER):
        assert tuple(Recurrent(C, site=site, hidden=10).output.weight.shape) == (10, C)
    assert Recurrent.geometry(C, 2) == Geometry(1, 1, C) and Recurrent.geometry(C, 2, hidden=10) == Geometry(1, 1, 10)
    assert Recurrent.supports == {"embed"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"site": CROSS}, "it reads one text in its order, and cannot attend to another"),
        ({"site": DECODER, "hidden": 0}, "`hidden` must be at least 1, but is 0"),
        ({"site": ENCODER, "hidden": 5}, "`hidden` must be even where a text is read in two directions, but is 5"),
    ],
)
def test_what_cannot_be_is_refused_by_a_sentence(options, sentence):
    with pytest.raises(ValueError) as error:
        Recurrent(C, **options)
    assert str(error.value) == sentence
