"""The loss that the heads share beside its formula in NumPy's float64, alone and in a step, where oneDNN computes it."""

from contextlib import nullcontext

import numpy as np
import paddle
import pytest

from paddle_tfm import randomness
from paddle_tfm_plugins.head._cross_entropy import cross_entropy

PAD, V, C = 2, 7, 5
TARGET = np.array([[3, 0, 6, PAD], [1, PAD, PAD, PAD], [5, 4, 0, 3]])
CONTEXTS = {"alone": nullcontext, "in a step": lambda: randomness.random_context(1, 1)}


def formula(h, words, bias, smoothing, pull, cap):
    """Loss [B, T], and the gradients of Σ loss · pull for h, words and bias."""
    logits, slope = h @ words.T + bias, 1.0
    if cap is not None:
        logits, slope = cap * np.tanh(logits / cap), 1 - np.tanh(logits / cap) ** 2
    best = logits.max(-1, keepdims=True)
    log_p = logits - best - np.log(np.exp(logits - best).sum(-1, keepdims=True))
    real, others = TARGET != PAD, np.arange(V) != PAD
    wanted = (1 - smoothing) * np.eye(V)[TARGET] + smoothing * others / (V - 1)
    of_logits = (np.exp(log_p) - wanted) * (real * pull)[..., None] * slope
    gradients = of_logits @ words, np.einsum("btv,btc->vc", of_logits, h), of_logits.sum((0, 1))
    return -(wanted * log_p).sum(-1) * real, gradients


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=list(CONTEXTS))
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("cap", "size", "products"), [(None, 1, 1), (2.0, 1, 1), (300.0, 40, 2)], ids=str)
def test_loss_and_gradients_are_those_of_the_formula_and_padding_has_none(rng, smoothing, context, cap, size, products):
    """From one product of h and the words, and a second one where a word is so far off that the loss is mended."""
    arrays = [rng.standard_normal(shape) for shape in [(3, 4, C), (V, C), (V,)]]
    arrays[0] *= size
    pull, calls = rng.standard_normal(TARGET.shape), []
    expected, gradients = formula(*arrays, smoothing, pull, cap)
    assert size == 1 or expected.max() > 70
    h, words, bias = (paddle.to_tensor(array.astype("float32"), stop_gradient=False) for array in arrays)

    def project(rows):
        calls.append(rows)
        return paddle.matmul(rows, words, transpose_y=True) + bias

    with context():
        loss = cross_entropy(project, h, words, bias, paddle.to_tensor(TARGET), smoothing, PAD, cap)
        (loss * paddle.to_tensor(pull.astype("float32"))).sum().backward()
    assert len(calls) == products
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert (loss.numpy()[TARGET == PAD] == 0).all() and (h.grad.numpy()[TARGET == PAD] == 0).all()
    for tensor, gradient in zip((h, words, bias), gradients):
        np.testing.assert_allclose(tensor.grad.numpy(), gradient, rtol=1e-3, atol=1e-5 * size)
