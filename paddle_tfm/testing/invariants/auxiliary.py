"""What a layer adds to the training loss."""

from __future__ import annotations

import paddle

from paddle_tfm.data.batches import Batch
from paddle_tfm.protocols import Tap
from paddle_tfm.testing.models.model_under_test import same_draws, select_rows
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Result, Skip

MAX_GROWTH = 0.25  # of it, where tokens are twice as many: a sum is twice as much


@check(
    *("attention", "norm", "feed_forward"),
    invariant="its auxiliary loss is no sum over tokens: with each sentence twice in the batch, it does not grow",
    consequence="its weight depends on how many tokens a batch has, and is not the one that the recipe says",
    hint="`add_aux_loss` takes a scalar per target token: divide by the count of real tokens",
)
def aux_losses(subject) -> Result:
    scene: Scene = subject.scenes[0]
    batch = scene.batch()
    rows = list(range(batch.source.shape[0]))
    once, twice = _added(scene, batch), _added(scene, select_rows(batch, [*rows, *rows]))
    if not once:
        return Skip("it adds no loss")
    for name, value in once.items():
        other = twice.get(name, 0.0)
        if not abs(other) <= (1.0 + MAX_GROWTH) * max(abs(value), 1e-12):
            return Failed(f"`{name}` is {value:.4g}, and {other:.4g} where each sentence stands twice in the batch")
    return Note(f"it adds {', '.join(f'`{name}`' for name in once)}")


def _added(scene: Scene, batch: Batch) -> dict[str, float]:
    """Name → the loss that is added in a pass of training over this batch."""
    model, tap = scene.model(), Tap()
    model.train()
    with paddle.no_grad(), same_draws(model):
        model.loss(batch, 0.0, tap)
    return {name: float(value) for name, value in tap.aux_losses.items()}
