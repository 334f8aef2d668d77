"""What travels between layers may be wider than d_model: a placement widens it behind the embeddings and narrows it in
front of the final norm, and nothing else of the model knows."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Tap
from paddle_tfm_plugins.placement.pre import Pre


class Beside(Pre):
    """Pre-norm with a second stream beside x that counts layers, and is added at the end; notes what it is called
    with."""

    calls: list = []

    def enter(self, x, info):
        self.calls.append(("enter", tuple(x.shape), tuple(info.positions.shape)))
        return paddle.stack([x, paddle.zeros_like(x)], 2)

    def forward(self, x, sublayers, info):
        return paddle.stack([super().forward(x[:, :, 0], sublayers, info), x[:, :, 1] + 1.0], 2)

    def leave(self, x, info):
        self.calls.append(("leave", tuple(x.shape), tuple(info.valid.shape)))
        return x[:, :, 0] + 10.0 * x[:, :, 1]


@pytest.fixture
def models(make_model):
    """A pre-norm model, and one with the same parameters whose layers are `Beside`."""
    plain, wide = make_model(), make_model()
    for stack in wide.stacks().values():
        for layer in stack.layers:
            layer.placement.__class__ = Beside
    Beside.calls = []
    return plain.eval() or plain, wide.eval() or wide


def test_it_is_entered_once_and_left_before_the_final_norm(models, make_batch):
    _, wide = models
    batch, before = make_batch(), {}
    for model in models:  # in the place of each final norm, what it is given
        for name, stack in model.stacks().items():
            stack.final_norm.register_forward_pre_hook(
                lambda norm, inputs, key=(model is wide, name): before.__setitem__(key, inputs[0].numpy())
            )
        model.encode(batch.source, batch.source_valid)
    np.testing.assert_allclose(before[True, "encoder"], before[False, "encoder"] + 10.0 * 2, rtol=1e-5, atol=1e-5)
    rows, length = batch.source.shape
    entered, left = ("enter", (rows, length, 16), (1, length)), ("leave", (rows, length, 2, 16), (rows, length))
    assert Beside.calls == [entered, left]


def test_cached_decoding_and_taps_go_on_as_before(models, make_batch):
    """The second stream shifts all channels alike, which layer norm takes away: both models give the same, at once and
    step by step, and record the same."""
    batch = make_batch()
    outputs, records = [], []
    for model in models:
        memory, tap = model.encode(batch.source, batch.source_valid), Tap(recording=True)
        at_once, _ = model.decode(batch.target_in, model.start(memory), tap=tap)
        state, steps = model.start(memory), []
        for token in batch.target_in.split(batch.target_in.shape[1], 1):
            h, state = model.decode(token, state)
            steps.append(h)
        outputs += [at_once.numpy(), paddle.concat(steps, 1).numpy()]
        records.append(tap.recorded)
    for other in outputs[1:]:
        np.testing.assert_allclose(other, outputs[0], rtol=1e-4, atol=2e-5)
    assert [name for name, _ in records[0]] == [name for name, _ in records[1]]
    for (_, ours), (_, theirs) in zip(*records):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=2e-5)
