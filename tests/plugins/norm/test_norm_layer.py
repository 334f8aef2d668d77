from contextlib import nullcontext

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_tfm import randomness
from paddle_tfm_plugins.norm.layer import LayerNorm

CONTEXTS = [nullcontext, lambda: randomness.random_context(1, 1)]  # in a step the kernels of oneDNN compute it
anywhere = pytest.mark.parametrize("context", CONTEXTS, ids=["alone", "in a step"])


def draw(*shape, seed=0, scale=3.0):
    return np.random.default_rng(seed).normal(2.0, scale, shape).astype(paddle.get_default_dtype())


def trained(norm):
    """The norm with a weight and a bias that are not 1 and 0."""
    for i, parameter in enumerate(norm.parameters()):
        parameter.set_value(draw(*parameter.shape, seed=i + 1))
    return norm


@pytest.mark.parametrize("rows", [(4, 7), (1, 1), (30, 11)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("eps", "scale"), [(1e-5, 3.0), (1e-3, 0.1)])
@anywhere
def test_fast_gradients_are_paddles_own(rows, bias, eps, scale, context):
    norm, x = trained(LayerNorm(32, eps, bias)), paddle.to_tensor(draw(*rows, 32, scale=scale))
    g = draw(*rows, 32, seed=9)
    g = paddle.to_tensor(g)
    x.stop_gradient = False
    tensors = [x, *norm.parameters()]
    with context():
        outputs = norm(x), F.layer_norm(x, [32], norm.weight, norm.bias, norm.eps)
    np.testing.assert_allclose(*[y.numpy() for y in outputs], rtol=1e-4, atol=2e-5)
    fast, plain = (paddle.grad(y, tensors, grad_outputs=g) for y in outputs)
    for ours, theirs in zip(fast, plain):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=3e-4 / scale)


@pytest.mark.parametrize("frozen", ["x", "weight", "bias"])
def test_what_is_frozen_gets_no_gradient(frozen):
    norm, x = LayerNorm(4), paddle.to_tensor(draw(2, 3, 4))
    tensors = {"x": x, "weight": norm.weight, "bias": norm.bias}
    for name, tensor in tensors.items():
        tensor.stop_gradient = name == frozen
    norm(x).sum().backward()
    assert [name for name, tensor in tensors.items() if tensor.grad is None] == [frozen]
