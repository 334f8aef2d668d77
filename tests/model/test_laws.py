"""The laws of the protocols, for every combination that matters: whatever the variant, cached decoding equals the full
pass, padding and neighbours change nothing, the future stays hidden, and beams reorder."""

import itertools

import numpy as np
import paddle
import pytest

POSITIONS = ["none", "sinusoidal", "learned", "rotary", "alibi", "{name: shaw, clip: 2}", "{name: chain, parts: [sinusoidal, rotary, alibi]}"]  # fmt: skip
PLACEMENTS = ["pre", "post", "res_post", "parallel", "sub_ln", "admin"]
COMBINATIONS = [
    *([f"model.position={position}", f"model.placement={placement}"] for position, placement in itertools.product(POSITIONS, PLACEMENTS)),
    *([f"model.norm={norm}", f"model.placement={placement}"] for norm, placement in itertools.product(["layer_std", "batch", "batch_per_position", "rms", "none"], ["pre", "post", "sub_ln"])),
    *([f"model.attention={attention}", f"model.placement={placement}"] for attention, placement in itertools.product(["linear", "single_head", "full_width_heads"], ["pre", "post"])),
    *([f"model.feed_forward={feed_forward}"] for feed_forward in ["gelu", "swiglu", "mixture_of_experts"]),
    ["model.position={encoder: shaw, decoder: rotary, cross: alibi}"],
    ["model.attention={encoder: linear, decoder: {self: single_head, cross: multihead}}", "model.position=sinusoidal"],
    ["model.norm={encoder: batch, decoder: {self: rms, cross: layer, feed_forward: layer_std, final: rms}}"],
]  # fmt: skip
BY_NAME = pytest.mark.parametrize("overrides", COMBINATIONS, ids=lambda overrides: " ".join(overrides))


def close(a, b, tolerance=2e-5):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


def real(h, batch):
    return h.numpy()[batch.target_valid.numpy()]


@BY_NAME
def test_laws(make_model, make_batch, stepwise, overrides):
    model = make_model(*overrides)
    _move_statistics(model, make_batch)
    batch = make_batch()
    with paddle.no_grad():
        full, _ = model(batch)
        for chunk in (1, 2, 3):
            close(stepwise(model, batch, chunk), full)  # law 2
        padded = make_batch(extra_padding=4)
        np.testing.assert_allclose(real(model(padded)[0], padded), real(full, batch), rtol=2e-5, atol=2e-5)
        alone = make_batch((5,), (4,))  # the first sentence of the same draw: no neighbours, no padding
        first = batch._replace(**{name: getattr(batch, name)[:1] for name in batch._fields[:7]})
        close(model(first)[0][:, :4], full[:1, :4])
        assert alone.target_in.shape == [1, 4]
        changed = batch.target_in.clone()
        changed[:, 2:] = (changed[:, 2:] + 1) % 13
        close(model(batch._replace(target_in=changed))[0][:, :2], full[:, :2])  # no future leaks
        _reorders(model, batch, full)


def _move_statistics(model, make_batch):
    """One training pass, so that running statistics are not at their initial values."""
    model.train()
    with paddle.no_grad():
        model(make_batch(seed=5))
    model.eval()


def _reorders(model, batch, full):
    """Selecting rows in the middle of decoding gives what these rows give."""
    rows = paddle.to_tensor([2, 0, 0], dtype="int64")
    state = model.start(model.encode(batch.source, batch.source_valid))
    _, state = model.decode(batch.target_in[:, :2], state, batch.target_valid[:, :2])
    later = batch.target_in[:, 2:].index_select(rows), batch.target_valid[:, 2:].index_select(rows)
    h, _ = model.decode(later[0], state.select(rows), later[1])
    close(h, full[:, 2:].index_select(rows))


@pytest.mark.parametrize("position", ["rotary", "{name: shaw, clip: 2}", "sinusoidal"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_no_gradient_reaches_the_future(make_model, make_batch, position, placement):
    """∂ h[t] / ∂ embedding of target token s is zero for s > t, and not for s ≤ t."""
    model, batch = make_model(f"model.position={position}", f"model.placement={placement}"), make_batch((4,), (5,))
    x = model.target_embedding(batch.target_in).detach()
    x.stop_gradient = False
    from paddle_tfm.protocols import Tap

    state = model.start(model.encode(batch.source, batch.source_valid))
    h, _ = model.decoder(x, state, batch.target_valid, Tap())
    for t in range(5):
        (gradient,) = paddle.grad(h[0, t, 0], x, retain_graph=True)
        # Paddle's softmax takes exp(-64) for whatever lies further below the largest score: 1e-28 is its zero.
        reached = gradient.abs().sum(-1)[0].numpy() > 1e-20
        np.testing.assert_array_equal(reached, np.arange(5) <= t)


@pytest.mark.parametrize("norm", ["layer", "{encoder: batch, decoder: layer}", "batch", "batch_per_position"])
def test_padding_changes_no_gradient(make_model, make_batch, norm, float64):
    """Training mode: extra columns of padding leave the loss and every gradient as they were."""
    model = make_model(f"model.norm={norm}")
    model.train()
    gradients = []
    for extra in (0, 5):
        model.clear_gradients()
        loss = model.loss(make_batch(extra_padding=extra), smoothing=0.1)
        loss.backward()
        gradients.append(
            {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None} | {"": loss.numpy()}
        )
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=1e-7, atol=1e-10, err_msg=name)


def test_without_positions_the_encoder_sees_a_bag(make_model, make_batch):
    """A bidirectional encoder without positions is permutation-equivariant; any encoding ends that."""
    batch = make_batch((6,), (3,))
    turned = batch.source.flip([1])
    for position, equivariant in (("none", True), ("sinusoidal", False), ("rotary", False), ("alibi", False)):
        model = make_model(f"model.position={position}")
        if position == "alibi":  # its distances survive the reversal of all: turn two neighbours instead
            order = paddle.to_tensor([1, 0, 2, 3, 4, 5])
            turned, back = batch.source.index_select(order, 1), order
        else:
            turned, back = batch.source.flip([1]), paddle.arange(5, -1, -1)
        x = model.encode(batch.source, batch.source_valid).x
        y = model.encode(turned, batch.source_valid).x.index_select(back, 1)
        assert np.allclose(x.numpy(), y.numpy(), atol=1e-5) == equivariant, position


def test_state_is_a_value(make_model, make_batch):
    """Decoding twice from one state gives the same twice: nothing is kept in the layers (law 5)."""
    model, batch = make_model(), make_batch()
    state = model.start(model.encode(batch.source, batch.source_valid))
    _, state = model.decode(batch.target_in[:, :2], state)
    first, _ = model.decode(batch.target_in[:, 2:3], state)
    model.decode(batch.target_in[:, 3:4], state)
    again, _ = model.decode(batch.target_in[:, 2:3], state)
    np.testing.assert_array_equal(first.numpy(), again.numpy())


def test_a_fully_masked_source_is_finite(make_model, make_batch):
    model, batch = make_model(), make_batch()
    nothing = paddle.zeros_like(batch.source_valid)
    model.train()
    loss = model.loss(batch._replace(source_valid=nothing))
    loss.backward()
    assert np.isfinite(float(loss))
    assert all(np.isfinite(p.grad.numpy()).all() for p in model.parameters() if p.grad is not None)
