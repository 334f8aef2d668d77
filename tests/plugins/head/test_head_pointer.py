"""The pointer-generator: words beyond the vocabulary."""

import numpy as np
import paddle

from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.pointer import PointerGenerator

C, V, B, T, S, PAD = 5, 7, 2, 3, 4, 0
rng = np.random.default_rng(0)
IDS = np.array([[3, V, 3, PAD], [V, 5, V + 1, V]])
VALID = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool)


def make():
    head = PointerGenerator(C, V, PAD)
    for parameter in head.parameters():
        parameter.set_value(rng.normal(0, 0.6, parameter.shape).astype("float32"))
    return head


def memory(x, extra=2, valid=VALID):
    positions = paddle.arange(S).unsqueeze(0)
    return Memory(paddle.to_tensor(x), positions, paddle.to_tensor(valid), paddle.to_tensor(IDS), extra)


def sizes():
    return rng.normal(size=(B, T, C)).astype("float32"), rng.normal(size=(B, S, C)).astype("float32")


def test_a_sentence_does_not_see_how_many_words_others_have_beyond_the_vocabulary():
    head, (h, x) = make(), sizes()
    target = paddle.to_tensor([[3, V, 2], [V, 5, V + 1]])
    few, many = (head.loss(paddle.to_tensor(h), target, memory(x, extra), 0.1).numpy() for extra in (2, 6))
    np.testing.assert_allclose(few, many, rtol=1e-6)
    short, long = (head.log_probs(paddle.to_tensor(h), memory(x, extra)).numpy() for extra in (2, 6))
    np.testing.assert_allclose(long[..., : V + 2], short, rtol=1e-6)


def test_a_target_that_is_nowhere_is_improbable_and_finite():
    head, (h, x) = make(), sizes()
    h = paddle.to_tensor(h)
    h.stop_gradient = False
    loss = head.loss(h, paddle.full([B, T], V + 1, "int64"), memory(x), 0.1)[0]
    loss.sum().backward()
    assert (loss.numpy() > 50).all() and np.isfinite(loss.numpy()).all() and np.isfinite(h.grad.numpy()).all()
