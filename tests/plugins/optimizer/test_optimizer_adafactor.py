"""Adafactor: n + m numbers for a matrix, and updates of bounded size."""

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


def rms(x):
    return np.sqrt((x**2).mean())


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


def test_squares_of_rank_one_are_kept_exactly():
    """g = a bᵀ: the product of means is g² itself, so that the first step is the sign of g."""
    rng = np.random.default_rng(0)
    gradient = np.outer(rng.normal(size=5), rng.normal(size=4)) * 1e-3
    weight = parameter(np.zeros([5, 4]))
    np.testing.assert_allclose(
        change(Adafactor().create([weight]), weight, gradient), -0.5 * np.sign(gradient), rtol=1e-5
    )


@pytest.mark.parametrize("clip", [1.0, 0.2])
@pytest.mark.parametrize("shape", [[6, 5], [9]], ids=str)
def test_an_update_is_no_larger_than_clip(shape, clip):
    """A gradient a hundred times as large as those before it would move Adam far."""
    rng = np.random.default_rng(1)
    weight = parameter(rng.normal(size=shape))
    update = Adafactor(clip=clip).create([weight])
    for _ in range(20):
        change(update, weight, 0.01 * rng.normal(size=shape))
    step = change(update, weight, rng.normal(size=shape))
    assert rms(step) == pytest.approx(0.5 * clip, rel=1e-4)


def test_a_relative_step_is_a_share_of_the_weights_size():
    gradient = np.random.default_rng(2).normal(size=[4, 3])
    sizes = []
    for size in (1.0, 10.0, 1e-6):
        weight = parameter(np.full([4, 3], size))
        sizes.append(rms(change(Adafactor(relative=True).create([weight]), weight, gradient, rate=0.01)))
    assert sizes[1] == pytest.approx(10 * sizes[0], rel=1e-3)
    assert sizes[2] == pytest.approx(1e-3 * sizes[0], rel=1e-3)  # epsilon2 is the least size


def test_rows_and_columns_without_a_gradient_stay():
    gradient = np.random.default_rng(3).normal(size=[4, 3])
    gradient[1], gradient[:, 2] = 0.0, 0.0
    weight = parameter(np.ones([4, 3]))
    update = Adafactor().create([weight])
    for _ in range(3):
        step = change(update, weight, 1e-9 * gradient)
        assert np.isfinite(step).all() and not step[1].any() and not step[:, 2].any()
        assert step[0, :2].all()
    assert not change(Adafactor().create([weight]), weight, np.zeros([4, 3])).any()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"decay": 0.0}, "`decay` must be in (0, 1], but is 0.0"),
        ({"clip": 0.0}, "`clip` must be positive, but is 0.0"),
        ({"epsilon1": 0.0}, "`epsilon1` must be positive, but is 0.0"),
        ({"epsilon2": -1.0}, "`epsilon2` must be positive, but is -1.0"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError) as caught:
        Adafactor(**options)
    assert str(caught.value) == text
