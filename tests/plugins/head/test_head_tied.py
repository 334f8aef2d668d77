"""The tied head: one table, saved once, trained from both sides."""

import copy

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.tied import TiedHead

NOTHING = Memory(*[paddle.zeros([2, 1, 4])] * 4)


class Model(nn.Layer):
    def __init__(self, bias=False):
        super().__init__()
        self.embedding = Embedding(6, 4, 0, 3)
        self.head = TiedHead(self.embedding, 6, 0, bias)


def test_it_saves_and_trains_the_table_once():
    assert list(Model().state_dict()) == ["embedding.weight"]
    assert list(Model(bias=True).state_dict()) == ["embedding.weight", "head.bias"]
    assert len(Model().parameters()) == 1 and not Model().head.parameters()


def test_a_new_table_is_the_heads_too():
    model, h = Model(), paddle.randn([2, 3, 4])
    model.set_state_dict({"embedding.weight": paddle.zeros([6, 4])})
    np.testing.assert_allclose(model.head.log_probs(h, NOTHING).numpy(), -np.log(6), rtol=1e-6)


def test_both_sides_give_the_table_its_gradient():
    model, ids = Model(), paddle.to_tensor([[2, 4]])
    model.head.loss(model.embedding(ids), ids, NOTHING).sum().backward()
    both = model.embedding.weight.grad.numpy().copy()
    model.clear_gradients()
    model.head.loss(model.embedding(ids).detach(), ids, NOTHING).sum().backward()
    head_alone = model.embedding.weight.grad.numpy()
    assert np.abs(head_alone).max() > 1e-3 and np.abs(both - head_alone)[[2, 4]].max() > 1e-3


def test_a_copy_of_the_model_is_tied_to_itself():
    model = Model()
    twin = copy.deepcopy(model)
    model.embedding.weight.set_value(paddle.ones([6, 4]))
    twin.embedding.weight.set_value(paddle.zeros([6, 4]))
    np.testing.assert_allclose(twin.head.log_probs(paddle.randn([1, 1, 4]), NOTHING).numpy(), -np.log(6), rtol=1e-6)
