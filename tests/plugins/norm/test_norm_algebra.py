"""Every norm has a fast path for CPUs; the plain one, which GPUs take, gives the same."""

import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm import _algebra
from paddle_tfm_plugins.norm.batch import BatchNorm
from paddle_tfm_plugins.norm.batch_per_position import BatchNormPerPosition
from paddle_tfm_plugins.norm.layer import LayerNorm
from paddle_tfm_plugins.norm.layer_std import LayerStd
from paddle_tfm_plugins.norm.rms import RMSNorm

MAKERS = {
    "layer": lambda: LayerNorm(6),
    "layer_std": lambda: LayerStd(6),
    "rms": lambda: RMSNorm(6),
    "batch": lambda: BatchNorm(6),
    "batch_per_position": lambda: BatchNormPerPosition(6, 8),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MAKERS)
def test_fast_and_plain_agree(name, training, monkeypatch):
    rng = np.random.default_rng(0)
    x, g = (paddle.to_tensor(rng.normal(size=(4, 5, 6)).astype("float32")) for _ in range(2))
    valid = paddle.to_tensor(np.arange(5) < np.array([[5], [3], [4], [5]]))
    x.stop_gradient = False
    seen = []
    for fast in (True, False):
        monkeypatch.setattr(_algebra, "by_products", lambda rows, fast=fast: fast)
        norm = MAKERS[name]()
        norm.train() if training else norm.eval()
        y = norm(x, valid, paddle.arange(5).unsqueeze(0))
        gradients = paddle.grad(y, [x, *norm.parameters()], grad_outputs=g)
        seen.append([tensor.numpy() for tensor in (y, *gradients, *norm.buffers())])
    for fast, plain in zip(*seen):
        np.testing.assert_allclose(fast, plain, rtol=1e-4, atol=1e-5)
