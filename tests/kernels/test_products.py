"""Products of a training step by oneDNN: every way to ask for their gradients. That they compute the formula: the kit."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import paddle
import pytest
from kernels_in_use import in_step
from paddle.distributed.fleet.utils import recompute

from paddle_tfm.kernels import function
from paddle_tfm.kernels.cpu import library, products
from paddle_tfm.ops import linear

KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(bool(library.why_not(kind)), reason=str(library.why_not(kind))))
    for kind in ("float32", "bfloat16")
]
float32_only = pytest.mark.parametrize("kind", KINDS[:1])
both_kinds = pytest.mark.parametrize("kind", KINDS)


def tensors(*shapes, dtype="float32", seed=1):
    rng = np.random.default_rng(seed)
    made = [paddle.to_tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
    for tensor in made:
        tensor.stop_gradient = False
    return made


def is_ours(y):
    """Whether y has a backward of ours."""
    return "_Call" in y.grad_fn.name()


@both_kinds
def test_no_grad_vars_are_left_out(kind):
    x, weight = tensors((3, 5), (5, 6))
    with in_step(kind):
        h = x * 2.0
        (whole,) = paddle.grad((linear(h, weight) ** 2).sum(), [weight])
        h = x * 2.0
        (part,) = paddle.grad((linear(h, weight) ** 2).sum(), [weight], no_grad_vars=[h])
    np.testing.assert_array_equal(part.numpy(), whole.numpy())


def results(kind, compute):
    """What `compute` returns with products of `kind` and with Paddle's, as arrays."""
    with in_step(kind):
        ours = compute()
    return [tensor.numpy() for tensor in ours], [tensor.numpy() for tensor in compute()]


def agree(kind, compute, tolerance=1e-5):
    ours, paddles = results(kind, compute)
    for one, other in zip(ours, paddles, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@float32_only
def test_gradients_accumulate_as_paddles_do(kind):
    """A tied weight (twice in one graph, once transposed), two backward passes, a hook, and an x used by several."""
    seen = []

    def compute():
        x, weight = tensors((3, 6), (6, 6))
        h = x * 2.0
        h.register_hook(lambda gradient: gradient * 0.5)
        weight.register_hook(lambda gradient: seen.append(1))
        for _ in range(2):
            (linear(linear(h, weight), weight, None, True) + linear(h, weight)).square().sum().backward(
                retain_graph=False
            )
            h = x * 3.0
        return x.grad, weight.grad

    agree(kind, compute, 2e-4)
    assert seen


@float32_only
@pytest.mark.parametrize("transpose", [True, False])
def test_a_second_derivative_is_paddles(kind, transpose):
    def compute():
        x, weight, bias = tensors((3, 6), (6, 6), (6,))
        h = x * 3.0
        y = linear(h, weight, bias, transpose)
        first = paddle.grad((y**3).sum(), [x, weight, bias], create_graph=True)
        penalty = sum((gradient**2).sum() for gradient in first)
        return [*first, *paddle.grad(penalty, [x, weight, bias])]

    agree(kind, compute, 1e-3)


@both_kinds
def test_a_graph_may_be_walked_back_again_by_grad(kind):
    x, weight = tensors((3, 5), (5, 6))
    with in_step(kind):
        y = (linear(x, weight) ** 2).sum()
        twice = [paddle.grad(y, [x, weight], retain_graph=True) for _ in range(2)]
    for one, other in zip(*twice):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_second_derivative_in_bfloat16_is_refused(kind):
    x, weight = tensors((3, 5), (5, 6))
    with in_step(kind), pytest.raises(Exception, match=r"has no second derivative.*train\.products: float32"):
        paddle.grad(linear(x, weight).sum(), [x], create_graph=True)


@both_kinds
def test_recomputed_activations_are_the_same_to_the_bit(kind):
    """The first pass is without gradients, the second with them."""
    x, weight, bias = tensors((3, 5), (5, 6), (6,))
    gradients = []
    with in_step(kind):
        for call in (linear, lambda *inputs: recompute(linear, *inputs)):
            (call(x * 2.0, weight, bias) ** 2).sum().backward()
            gradients.append([tensor.grad.numpy() for tensor in (x, weight, bias)])
            for tensor in (x, weight, bias):
                tensor.clear_gradient(False)
    for one, other in zip(*gradients):
        np.testing.assert_array_equal(one, other)


@float32_only
@pytest.mark.parametrize("changed", [0, 1])
def test_a_factor_that_was_changed_in_place_is_noticed(kind, changed):
    """Otherwise the gradient would silently be that of other numbers."""
    inputs = [tensor * 1.0 for tensor in tensors((3, 5), (5, 6))]
    with in_step(kind):
        loss = (linear(*inputs) ** 2).sum()
        with paddle.no_grad():
            inputs[changed].scale_(2.0)
        with pytest.raises(Exception, match="was changed in place"):
            loss.backward()


@both_kinds
def test_a_product_keeps_no_more_than_paddles(kind):
    """After the backward pass x is free, while the loss is still there."""
    (weight,) = tensors((5, 6))
    with in_step(kind):
        (x,) = tensors((3, 5))
        h = x * 2.0
        alive = weakref.ref(h)
        loss = (linear(h, weight) ** 2).sum()
        del h
        assert (alive() is None) == (kind == "bfloat16")  # half of it is kept, or all
        loss.backward()
    gc.collect()
    assert alive() is None


@both_kinds
def test_products_on_one_x_share_its_rounding(kind):
    """q, k and v: one array of half precision between them, not three."""
    x, *weights = tensors((3, 5), (5, 6), (5, 6), (5, 6))
    with in_step(kind):
        cache = {}
        functions = [products.Linear(False, kind, cache) for _ in weights]
        for each, weight in zip(functions, weights):
            function.apply(each, x, weight)
    factors = [each.factors[0] for each in functions]
    assert all(factor is factors[0] for factor in factors)
    assert (factors[0].dtype == np.uint16) == (kind == "bfloat16")


@both_kinds
def test_what_onednn_does_not_take_is_paddles(kind):
    x, weight, bias = tensors((3, 4, 5), (5, 6), (6,), dtype="float64")
    with in_step(kind):
        y = linear(x, weight, bias)
        assert not is_ours(y)
        y.sum().backward()
        nothing = linear(*tensors((3, 0, 5), (5, 6), (6,)))  # no rows, which oneDNN's products would not write
    np.testing.assert_allclose(y.numpy(), x.numpy() @ weight.numpy() + bias.numpy(), atol=1e-12)
    np.testing.assert_allclose(weight.grad.numpy(), np.outer(x.numpy().sum((0, 1)), np.ones(6)), atol=1e-12)
    assert nothing.shape == [3, 0, 6]


@float32_only
def test_shapes_that_do_not_fit_are_paddles_to_refuse(kind):
    x, weight = tensors((3, 4), (5, 6))
    with in_step(kind), pytest.raises(ValueError, match=r"(?i)mismatch|dimension|shape"):
        linear(x, weight)


@both_kinds
def test_outside_of_a_training_step_products_are_paddles(kind):
    x, weight = tensors((3, 5), (5, 6))
    with in_step(kind):
        pass
    assert not is_ours(linear(x, weight))


def test_where_bfloat16_is_not_to_be_had_it_is_float32(monkeypatch):
    reasons = {"bfloat16": "no instructions"}
    monkeypatch.setattr(products, "why_not", lambda kind: reasons.get(kind))
    assert [products.available(kind) for kind in ("float32", "bfloat16")] == ["float32", "float32"]
    reasons["float32"] = "no library"
    assert [products.available(kind) for kind in ("float32", "bfloat16")] == [None, None]
    assert products.description("bfloat16") == "float32 by Paddle"
