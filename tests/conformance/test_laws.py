"""The laws of the protocols, quickly, for each component alone: cached decoding equals the full pass, padding and neighbours
change nothing, the future stays hidden, and beams reorder. `pytest -m conformance` says the rest, and runs pairs."""

import numpy as np
import paddle
import pytest

from paddle_tfm import create_registry

OPTIONS = {  # of components that cannot be built without any, or not at every site
    "chain": "{name: chain, parts: [sinusoidal, alibi]}",
    "randomized": "{name: randomized, encoding: {name: chain, parts: [sinusoidal, rotary, shaw]}, longest: 100}",
    "xpos": "{encoder: rotary, decoder: xpos}",
    "local": "{encoder: local, decoder: {self: local, cross: multihead}}",
    **{
        name: f"{{encoder: {name}, decoder: {{self: {name}, cross: multihead}}}}"
        for name in ("synthesizer", "recurrent", "convolution")
    },
}
KINDS = ("attention", "norm", "placement", "position", "feed_forward", "head", "initializer")


def each_component():
    """Whatever the registry holds that a model is made of, one at a time: a new variant is held to the laws by being
    registered. What the clinic has is wrong on purpose."""
    for entry in create_registry():
        if entry.kind in KINDS and entry.provider.plugin != "clinic":
            overrides = [f"model.{entry.kind}={OPTIONS.get(entry.name, entry.name)}"]
            yield (
                [*overrides, "model.share_embeddings=true", "vocabulary.shared=true"]
                if entry.name == "tied"
                else overrides
            )


def by_overrides(combinations):
    return pytest.mark.parametrize("overrides", combinations, ids=lambda overrides: " ".join(overrides))


COMPONENTS = list(each_component())


def close(a, b, tolerance=2e-5):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


def real(h, batch):
    return h.numpy()[batch.target_valid.numpy()]


@by_overrides(
    [
        *COMPONENTS,
        ["model.norm={encoder: batch, decoder: {self: rms, cross: layer, feed_forward: layer_std, final: rms}}"],
    ]
)
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
        first = batch.each(lambda part: part[:1])
        close(model(first)[0][:, :4], full[:1, :4])
        assert alone.target_in.shape == [1, 4]
        changed = batch.target_in.clone()
        changed[:, 2:] = (changed[:, 2:] + 1) % 13
        close(model(batch._replace(target_in=changed))[0][:, :2], full[:, :2])  # no future leaks
        _reorders(model, batch, full)


def _move_statistics(model, make_batch):
    """One training pass, so that running statistics are not at their initial values."""
    _open_gates(model)
    model.train()
    with paddle.no_grad():
        model(make_batch(seed=5))
    model.eval()


def _closed_gates(model):
    """The numbers that start at zero because the method says so (ReZero): what they multiply gets no gradient at first."""
    kept = [parameter for parameter in model.parameters() if getattr(parameter, "keep_initial", False)]
    return [parameter for parameter in kept if parameter.size == 1 and not parameter.numpy().any()]


def _open_gates(model):
    """Behind a closed gate nothing happens that a law could be about."""
    for gate in _closed_gates(model):
        gate.set_value(paddle.full_like(gate, 0.5))


def _reorders(model, batch, full):
    """Selecting rows in the middle of decoding gives what these rows give."""
    rows = paddle.to_tensor([2, 0, 0], dtype="int64")
    state = model.start(model.encode(batch.source, batch.source_valid))
    _, state = model.decode(batch.target_in[:, :2], state, batch.target_valid[:, :2])
    later = batch.target_in[:, 2:].index_select(rows), batch.target_valid[:, 2:].index_select(rows)
    h, _ = model.decode(later[0], state.select(rows), later[1])
    close(h, full[:, 2:].index_select(rows))
    # Beams of a sentence change places: their memory may stay.
    beams = model.decode(batch.target_in[:, :2], model.start(model.encode(batch.source, batch.source_valid)))[1]
    beams = beams.select(paddle.to_tensor([0, 0, 1, 1, 2], dtype="int64"))
    tokens = paddle.to_tensor([[5], [6], [7], [8], [9]])
    _, beams = model.decode(tokens, beams)
    order = paddle.to_tensor([1, 0, 3, 3, 4], dtype="int64")
    stays, moved = (model.decode(tokens, beams.select(order, same))[0] for same in (True, False))
    close(stays, moved)
    other = model.decode(tokens, beams.select(paddle.to_tensor([2, 0, 3, 3, 4], dtype="int64"), False))[0]
    assert float((other - moved).abs().max()) > 0


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
