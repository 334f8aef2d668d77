"""Functions with a backward of their own behave as Paddle's do, whichever of their gradients are asked for."""

from __future__ import annotations

import itertools
import weakref

import numpy as np
import paddle
import pytest

from paddle_tfm.kernels import function


class Affine(function.Function):
    """x w + b."""

    def forward(self, *inputs):
        self.x, self.w, _ = [each.detach() for each in inputs]
        return paddle.matmul(*inputs[:2]) + inputs[2]

    def backward(self, gradient):
        of_x = paddle.matmul(gradient, self.w, transpose_y=True)
        return [of_x, paddle.matmul(self.x, gradient, transpose_x=True), gradient.sum(0)]


@pytest.fixture
def inputs(rng):
    made = [paddle.to_tensor(rng.standard_normal(shape).astype("float32")) for shape in [(3, 4), (4, 5), (5,)]]
    for each in made:
        each.stop_gradient = False
    return made


def both(inputs):
    """The same scalar by the function and by Paddle, behind and before operations of Paddle's."""
    x, w, b = inputs
    for output in (function.apply(Affine(), paddle.tanh(x), w, b), paddle.matmul(paddle.tanh(x), w) + b):
        yield (output**2).sum()


PARTS = [part for n in (1, 2, 3) for part in itertools.combinations(range(3), n)]


@pytest.mark.parametrize("part", PARTS)
def test_gradients_may_be_asked_for_by_part(inputs, part):
    ours, plain = (paddle.grad(value, [inputs[i] for i in part]) for value in both(inputs))
    for one, other in zip(ours, plain):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("frozen", PARTS[:-1])
def test_what_is_frozen_gets_no_gradient_and_the_rest_does(inputs, frozen):
    for i in frozen:
        inputs[i].stop_gradient = True
    gradients = []
    for value in both(inputs):
        value.backward()
        gradients.append([None if each.grad is None else each.grad.numpy() for each in inputs])
        for each in inputs:
            each.clear_gradient(False)
    for i, (one, other) in enumerate(zip(*gradients)):
        assert (one is None) == (other is None) == (i in frozen)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_one_tensor_may_be_two_inputs(inputs):
    square = inputs[1][:4, :4].detach()
    square.stop_gradient = False
    zero = paddle.zeros([4])
    for value in (function.apply(Affine(), square, square, zero), paddle.matmul(square, square)):
        (gradient,) = paddle.grad(value.sum(), [square])
        ones = np.ones([4, 4], "float32")
        np.testing.assert_allclose(gradient.numpy(), ones @ square.numpy().T + square.numpy().T @ ones, rtol=1e-5)


def test_what_was_held_is_given_up_while_the_graph_still_stands(inputs):
    affine = Affine()
    held, output = weakref.ref(affine), function.apply(affine, *inputs)
    del affine
    gradient = paddle.ones_like(output)
    paddle.grad(output, inputs, gradient, retain_graph=True)
    assert held() is None and output.grad_fn is not None
    with pytest.raises(OSError, match="walked back once"):  # Paddle puts every exception of a backward into one
        paddle.grad(output, inputs, gradient)


class Cube(function.Function):
    """x³ w; its backward by Paddle's operations too."""

    once = False

    def forward(self, *inputs):
        self.inputs = inputs
        return inputs[0] ** 3 * inputs[1]

    def backward(self, gradient):
        x, w = self.inputs
        return [gradient * 3 * x**2 * w, gradient * x**3]

    differentiable_backward = backward


def test_one_that_keeps_what_it_holds_has_a_second_derivative_and_may_be_walked_back_again(rng):
    x, w = (paddle.to_tensor(rng.standard_normal(4), stop_gradient=False) for _ in range(2))
    y = function.apply(Cube(), x, w)
    (first,) = paddle.grad(y.sum(), [x], create_graph=True)
    (again,) = paddle.grad(y.sum(), [x], retain_graph=True)
    second = paddle.grad((first**2).sum(), [x, w])
    a, b = x.numpy(), w.numpy()
    for one, formula in [(first, 3 * a**2 * b), (again, 3 * a**2 * b), (second[0], 36 * a**3 * b**2)]:
        np.testing.assert_allclose(one.numpy(), formula, rtol=1e-10)
    np.testing.assert_allclose(second[1].numpy(), 18 * a**4 * b, rtol=1e-10)


def test_one_without_a_second_derivative_says_so_instead_of_leaving_it_out(inputs):
    with pytest.raises(OSError, match="Affine has no second derivative"):
        paddle.grad(function.apply(Affine(), *inputs).sum(), inputs, create_graph=True)


def test_without_gradients_nothing_is_recorded(inputs):
    with paddle.no_grad():
        assert function.apply(Affine(), *inputs).stop_gradient
    assert function.apply(Affine(), *[each.detach() for each in inputs]).stop_gradient


def test_a_backward_that_forgets_an_input_is_named(inputs):
    class Short(Affine):
        def backward(self, gradient):
            return super().backward(gradient)[:2]

    x, w, b = inputs
    with pytest.raises(Exception, match="`backward` of Short must give a gradient, or None, for each of 3 inputs"):
        function.apply(Short(), x, w, b).sum().backward()
