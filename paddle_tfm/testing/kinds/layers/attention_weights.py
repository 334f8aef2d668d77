"""What an attention's weights leave out: dropped ones, and those that masks made from its own hide."""

from __future__ import annotations

from collections.abc import Hashable
from unittest.mock import patch

import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask
from paddle_tfm.protocols.mask import Predicate
from paddle_tfm.testing.kinds.layers.attention import AttentionProbe
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.model_under_test import same_draws
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference, distance

RATE, DRAWS, TOLERANCE = 0.5, 2, 1e-4


@check(
    "attention",
    invariant="dropout acts on weights, not on scores: with softmax weights, one number added to all scores of a "
    "query changes nothing, in training too",
    consequence="a dropped key gets a score of 0, which may be the highest: it is attended to instead of left out",
    hint="`dropout(softmax(scores))`, and not `softmax(dropout(scores))`; a dropped score must be as low as a "
    "masked one",
)
def dropped_weights(subject: ComponentUnderTest) -> Result:
    if not subject.takes("dropout"):
        return Skip("its constructor takes no `dropout`")
    probe = AttentionProbe(subject, dropout=RATE)
    kv = probe.key_value()
    if isinstance(kv, Skip):
        return kv
    # The same vector added to all keys adds q · vector to all scores of a query, which a softmax does not see.
    vector = probe.normal(1, kv.key.shape[1], 1, kv.key.shape[3])
    raised = KeyValue(kv.key + vector, kv.value)
    if distance(probe(probe.x, kv), probe(probe.x, raised)) > TOLERANCE:
        return Skip("its weights are no softmax of products of queries and keys")
    probe.attention.train()
    for seed in range(DRAWS):
        outputs = []
        for each in (kv, raised):
            with same_draws(probe.attention, seed):
                outputs.append(probe(probe.x, each))
        what = f"dropout {RATE:g}, all scores of a query raised by one number"
        if failed := difference(outputs[0], outputs[1], what, TOLERANCE):
            return failed
    return Passed()


@check(
    "attention",
    invariant="all layers and heads that call `mask.restricted` with the same key hide the same positions",
    consequence="the first layer's window, or pattern, is that of all layers: the mask is computed once for a key",
    hint="all numbers that the predicate depends on belong to the key: `(name, window, site.layer)`",
    each_scene=True,
)
def restricted_by_key(scene: Scene) -> Result:
    usual = Mask.restricted
    others: list[Hashable] = []
    calls = 0
    far: dict[tuple[int, Hashable], tuple[Mask, Tensor | None]] = {}  # what a key hides in longer texts than a scene's

    def compared(mask: Mask, key: Hashable, predicate: Predicate) -> Mask:
        nonlocal calls
        calls += 1
        shared = usual(mask, key, predicate)
        seen = predicate(mask.q_positions.unsqueeze(2), mask.k_positions.unsqueeze(1)).unsqueeze(1)
        if not bool((paddle.logical_and(mask.allowed(), seen) == shared.allowed()).all()):
            others.append(key)
        hidden = _far_away(predicate)
        _, before = far.setdefault((id(mask), key), (mask, hidden))
        if hidden is not None and before is not None and not bool((hidden == before).all()):
            others.append(key)
        return shared

    with patch.object(Mask, "restricted", compared):
        scene.outputs(scene.evaluated_model, scene.batch())
    if not calls:
        return Skip("it does not call `mask.restricted`")
    return Failed(f"two layers hide different keys under the key {others[0]!r}") if others else Passed()


FAR = 640  # more than the widest window of papers on attention within a window, 512


def _far_away(predicate: Predicate) -> Tensor | None:
    """What a predicate says of all pairs of FAR positions; None where it is of one batch's positions only."""
    positions = paddle.arange(FAR)
    try:
        return predicate(positions.reshape([1, FAR, 1]), positions.reshape([1, 1, FAR]))
    except Exception:  # whatever shapes it had in mind
        return None
