"""The mixture of experts: where it has no balance loss, and the precision of its router."""

import numpy as np
import paddle

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.feed_forward._experts import affinities
from paddle_tfm_plugins.feed_forward.mixture_of_experts import MixtureOfExperts

C, F, N = 5, 7, 4


def make(seed=0, **options):
    moe, rng = MixtureOfExperts(C, F, experts=N, **options), np.random.default_rng(seed)
    for parameter in moe.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype("float32"))
    return moe


def at(valid):
    return TokenInfo(PositionalEncoding(), paddle.arange(valid.shape[1]).unsqueeze(0), paddle.to_tensor(valid))


def test_there_is_no_balance_loss_at_evaluation_or_without_a_weight():
    x, valid = paddle.randn([1, 3, C]), np.ones([1, 3], bool)
    moe, free, tap = make(), make(balance_weight=0.0), Tap()
    moe.eval()
    moe(x, at(valid), tap)
    free.train()
    free(x, at(valid), tap)
    assert not tap.aux_losses


def test_the_router_of_a_model_in_half_precision_is_computed_in_float32():
    """Scores that differ by less than bfloat16's step still choose the better expert. (The experts themselves have no
    kernel for bfloat16 on a CPU.)"""
    moe = MixtureOfExperts(2, 4, experts=2, top_k=1)
    moe.router.weight.set_value(paddle.to_tensor([[1.0, 1.0], [0.0, 0.004]]))
    tokens = paddle.to_tensor([[1.0, 0.5]], "bfloat16")
    p = affinities(tokens, moe.to(dtype="bfloat16").router, paddle.nn.functional.softmax)
    step = float(paddle.to_tensor(0.004).astype("bfloat16"))
    assert p.dtype == paddle.float32
    np.testing.assert_allclose(float(p[0, 1] - p[0, 0]), np.tanh(step / 4), rtol=1e-3)
