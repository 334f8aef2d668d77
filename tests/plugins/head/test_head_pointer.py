"""The pointer-generator: words beyond the vocabulary, and that it learns to copy them."""

import numpy as np
import paddle
import pytest

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


def test_it_may_say_words_of_the_source():
    assert PointerGenerator.extends_vocabulary


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


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_source_of_padding_alone_is_finite(smoothing):
    head, (h, x) = make(), sizes()
    empty = memory(x, valid=np.zeros([B, S], bool))
    h = paddle.to_tensor(h)
    assert np.isfinite(head.loss(h, paddle.full([B, T], 2, "int64"), empty, smoothing).numpy()).all()
    np.testing.assert_allclose(np.exp(head.log_probs(h, empty).numpy()).sum(-1), 1.0, rtol=1e-5)


def test_it_learns_to_copy_what_the_vocabulary_lacks():
    paddle.seed(0)
    head, (h, x) = PointerGenerator(C, V, PAD), sizes()
    h, there, target = paddle.to_tensor(h, stop_gradient=False), memory(x), paddle.to_tensor([[V, 3, V], [V + 1, 5, V]])
    optimizer = paddle.optimizer.Adam(0.05, parameters=head.parameters())
    first = float(head.loss(h, target, there).mean())
    for _ in range(60):
        loss = head.loss(h, target, there).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    assert float(loss) < 0.3 * first
