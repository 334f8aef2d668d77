"""FixNorm: zeros, and the embedding's table."""

import numpy as np
import paddle

from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.fix import FixNorm

C, V, PAD = 4, 7, 0
NOTHING = Memory(*[paddle.zeros([2, 1, C])] * 4)


def make(**options):
    head = FixNorm(C, V, Embedding(V, C, PAD, 3), PAD, **options)
    rng = np.random.default_rng(0)
    if head.weight is not None:
        head.weight.set_value(rng.normal(size=[V, C]).astype(head.weight.numpy().dtype))
    return head


def test_a_word_and_a_state_of_zeros_are_finite():
    head = make()
    words = head.weight.numpy()
    words[4] = 0.0
    head.weight.set_value(words)
    h = paddle.zeros([2, 3, C])
    h.stop_gradient = False
    np.testing.assert_allclose(head.log_probs(h, NOTHING).numpy(), -np.log(V), rtol=1e-6)
    head.loss(h, paddle.full([2, 3], 4, "int64"), NOTHING, 0.1).sum().backward()
    assert np.isfinite(h.grad.numpy()).all() and np.isfinite(head.weight.grad.numpy()).all()
