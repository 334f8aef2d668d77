"""Adafactor: n + m numbers for a matrix, and what has no gradient."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.optimizer.adafactor import Adafactor


def parameter(value):
    made = paddle.create_parameter(list(np.shape(value)), "float32")
    made.set_value(np.asarray(value, dtype="float32"))
    return made


def change(update, weight, gradient, rate=0.5):
    before = weight.numpy().copy()
    weight.grad = paddle.to_tensor(np.asarray(gradient, dtype="float32"))
    update.set_lr(rate)
    update.step()
    update.clear_grad(set_to_zero=False)
    return weight.numpy() - before


@pytest.mark.parametrize(
    ("shape", "kept"),
    [([30, 20], {"rows": [30, 1], "columns": [1, 20]}), ([7], {"second": [7]}),
     ([2, 5, 3], {"rows": [2, 5, 1], "columns": [2, 1, 3]})],
)  # fmt: skip
def test_what_is_kept(shape, kept):
    weight = parameter(np.ones(shape))
    update = Adafactor().create([weight])
    change(update, weight, np.ones(shape))
    shapes = {name.removeprefix(f"{weight.name}."): value.shape for name, value in update.state_dict().items()}
    assert shapes == {**kept, "updates": [1]}
