"""muP: a step changes activations by as much in a wide model as in a narrow one; with equal rates it does not."""

import numpy as np
import paddle
import pytest

from paddle_tfm import build_model
from paddle_tfm.protocols import Tap
from paddle_tfm_plugins.optimizer.adam import Adam

NARROW, WIDE = 32, 256
VOCABULARY, RATE, STEPS = 13, 2e-3, 3


def change(initializer, width, make_batch, scaled=True):
    """The coordinate check of github.com/microsoft/mup: the mean size of what three steps of Adam change in the logits
    and in the last branch, from the same tokens at each width."""
    model = build_model(
        "base",
        [
            f"model.d_model={width}",
            f"model.d_ff={2 * width}",
            f"model.num_heads={width // 16}",
            "model.encoder_layers=1",
            "model.decoder_layers=1",
            "model.head=linear",
            f"model.scale_embedding={str(scaled).lower()}",
            f"model.initializer={initializer}",
        ],
        source_vocabulary=VOCABULARY,
        target_vocabulary=VOCABULARY,
    )
    model.eval()  # no dropout
    batch = make_batch()
    optimizer = Adam().create([parameter for parameter in model.parameters() if not parameter.stop_gradient])
    optimizer.set_lr(RATE)

    def activations():
        tap = Tap(recording=True)
        with paddle.no_grad():
            h, _ = model(batch, tap)
            branches = dict(tap.recorded)
            return model.head.output(h).numpy(), branches["decoder.0.feed_forward.branch"].numpy()

    before = activations()
    for _ in range(STEPS):
        (model.loss(batch) / batch.tokens).backward()
        optimizer.step()
        optimizer.clear_grad()
    return [np.abs(b - a).mean() for a, b in zip(before, activations())]


@pytest.mark.parametrize("scaled", [True, False])
def test_mup_moves_wide_and_narrow_models_alike(make_batch, scaled):
    spec = f"{{name: mup, base_width: {NARROW}}}"
    narrow, wide = (np.array(change(spec, width, make_batch, scaled)) for width in (NARROW, WIDE))
    assert (wide / narrow < 2).all() and (wide / narrow > 0.5).all()


def test_equal_rates_move_wide_models_more(make_batch):
    narrow, wide = (np.array(change("normal", width, make_batch)) for width in (NARROW, WIDE))
    assert (wide / narrow > 4).all()
