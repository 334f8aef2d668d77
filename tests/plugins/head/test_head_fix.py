"""FixNorm: zeros, and the embedding's table."""

import copy

import numpy as np
import paddle
from paddle import nn

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


def states(seed=1):
    return np.random.default_rng(seed).normal(size=(2, 3, C)).astype("float32")


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


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = Embedding(V, C, PAD, 3)
        self.head = FixNorm(C, V, self.embedding, PAD, tied=True)


def test_tied_it_is_the_embeddings_table_saved_once_and_spares_its_padding():
    model = Model()
    assert list(model.state_dict()) == ["embedding.weight", "head.scale"]
    twin = copy.deepcopy(model)
    model.embedding.weight.set_value(paddle.zeros([V, C]))
    twin.embedding.weight.set_value(paddle.ones([V, C]) * paddle.arange(V).unsqueeze(1).astype("float32"))
    h = paddle.to_tensor(states())
    np.testing.assert_allclose(model.head.log_probs(h, NOTHING).numpy(), -np.log(V), rtol=1e-5)
    assert abs(twin.head.log_probs(h, NOTHING).numpy()[..., PAD] + np.log(V)).max() > 1e-3
    twin.head.loss(h, paddle.full([2, 3], 5, "int64"), NOTHING).sum().backward()
    gradient = twin.embedding.weight.grad.numpy()
    assert not gradient[PAD].any() and np.abs(gradient[5]).max() > 1e-5
