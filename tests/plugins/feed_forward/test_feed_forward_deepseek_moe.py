"""DeepSeek's mixture: what moves its biases, and what does not; the formulas stand under tests/references."""

import numpy as np
import paddle

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm.randomness import random_context
from paddle_tfm_plugins.feed_forward.deepseek_moe import DeepSeekMoE

C, F, N = 5, 7, 4


def make(seed=0, **options):
    moe, rng = DeepSeekMoE(C, F, **{"experts": N, **options}), np.random.default_rng(seed)
    for parameter in moe.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype("float32"))
    return moe


def tensor(*shape, seed=1):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"), stop_gradient=False)


def at(x, valid=None):
    positions = paddle.arange(x.shape[1]).unsqueeze(0)
    return TokenInfo(PositionalEncoding(), positions, paddle.ones(x.shape[:2], "bool") if valid is None else valid)


def test_biases_stay_and_no_loss_is_added_in_evaluation(registry):
    moe, x, tap = make(), tensor(2, 6, C), Tap()
    for each in (moe, registry.build("feed_forward", "mixture_of_experts", d_model=C, d_ff=F)):
        each.eval()
        each(x, at(x), tap)
    moe.train()
    with paddle.no_grad():
        moe(x, at(x), Tap())
    assert not moe.balance.numpy().any() and not tap.aux_losses


def test_a_step_of_several_batches_moves_the_biases_once():
    """Against the load of all of them, selected by one b; the next step goes on from there (2408.15664, algorithm 1)."""
    batches = [tensor(2, 6, C, seed=seed) for seed in range(4)]
    moe, b = make(bias_rate=0.1, top_k=1), np.zeros(N, "float32")
    moe.train()
    for step in (1, 2):
        counts = np.zeros(N)
        for micro, x in enumerate(batches):
            s = 1 / (1 + np.exp(-x.numpy().reshape(-1, C) @ moe.router.weight.numpy()))
            counts += np.bincount((s + b).argmax(-1), minlength=N)
            with random_context(1, step, micro):
                moe(x, at(x), Tap())
        b = b + np.float32(0.1) * np.sign(counts.mean() - counts).astype("float32")
        np.testing.assert_allclose(moe.balance.numpy(), b, atol=1e-6)
        assert step > 1 or b.any()
    assert "load" not in "".join(moe.state_dict())


def test_a_token_far_from_all_experts_has_a_finite_loss():
    """Its affinities are all 0 in float32."""
    moe, tap = make(), Tap()
    moe.router.weight.set_value(-paddle.ones([C, N]))
    moe.train()
    x = paddle.full([1, 2, C], 1e4)
    moe(x, at(x), tap)
    assert np.isfinite(float(tap.aux_losses["sequence_balance"]))
