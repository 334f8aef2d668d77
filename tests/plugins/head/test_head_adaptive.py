"""The adaptive softmax: exact, and sparing with rare words."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.adaptive import AdaptiveSoftmax

C, V, PAD = 8, 12, 0
NOTHING = Memory(*[paddle.zeros([2, 1, C])] * 4)


def make(**options):
    head = AdaptiveSoftmax(C, V, PAD, **{"cutoffs": [4, 7], **options})
    rng = np.random.default_rng(0)
    for parameter in head.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype(parameter.numpy().dtype))
    return head


def states(dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(1).normal(size=(2, 3, C)).astype(dtype))


@pytest.mark.parametrize(
    ("target", "rows"),
    [
        ([[1, 2, 3], [PAD, 1, 1]], {}),
        ([[1, 5, 3], [6, 4, 1]], {0: 3}),
        ([[1, 5, 11], [PAD, PAD, 7]], {0: 1, 1: 2}),
    ],
)
def test_the_loss_makes_logits_of_a_cluster_for_its_own_targets_only(target, rows):
    head, seen = make(), {}
    for i, layer in enumerate(head.rare):
        layer.register_forward_post_hook(lambda layer, inputs, out, i=i: seen.update({i: out.shape[0]}))
    h = states()
    head.loss(h, paddle.to_tensor(target), NOTHING).sum().backward()
    assert seen == rows
    assert [i for i, layer in enumerate(head.rare) if layer.weight.grad is not None] == sorted(rows)
    head.loss(h, paddle.to_tensor(target), NOTHING, smoothing=0.1)
    assert set(seen) == {0, 1}


@pytest.mark.parametrize(
    ("words", "begins"), [(32_000, [4000, 16_000]), (100, [12, 50]), (13, [5, 10]), (9, [5]), (5, [])]
)
def test_where_a_vocabulary_is_cut_by_default(words, begins):
    assert [begin for begin, _ in AdaptiveSoftmax(C, words, PAD).clusters] == begins


def test_cutoffs_that_the_vocabulary_does_not_reach_are_left_out():
    assert make(cutoffs=[4, 7, 12, 2000]).clusters == [(4, 7), (7, 12)]
