"""The mixture of experts: its balance loss, and what it declares."""

import numpy as np
import paddle
import pytest

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


def test_the_balance_loss_is_its_weight_where_all_is_even_and_more_where_one_expert_gets_all():
    x, valid, losses = np.eye(4, dtype="float32")[None], np.ones([1, 4], bool), []
    for router in (np.eye(4), np.tile([1.0, 0.0, 0.0, 0.0], (4, 1))):
        moe = MixtureOfExperts(4, F, experts=4, top_k=1, balance_weight=0.5)
        moe.router.weight.set_value((50.0 * router).astype("float32"))
        tap = Tap()
        moe(paddle.to_tensor(x), at(valid), tap)
        losses.append(float(next(iter(tap.aux_losses.values()))))
    assert losses == pytest.approx([0.5, 2.0], rel=1e-5)


def test_there_is_no_balance_loss_at_evaluation_or_without_a_weight():
    x, valid = paddle.randn([1, 3, C]), np.ones([1, 3], bool)
    moe, free, tap = make(), make(balance_weight=0.0), Tap()
    moe.eval()
    moe(x, at(valid), tap)
    free.train()
    free(x, at(valid), tap)
    assert not tap.aux_losses


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_of_padding_alone_is_finite(training):
    moe, tap, x = make(), Tap(), paddle.randn([2, 3, C])
    moe.train() if training else moe.eval()
    out = moe(x, at(np.zeros([2, 3], bool)), tap)
    assert (out.numpy() == 0).all()
    assert all(float(loss) == 0 for loss in tap.aux_losses.values())


def test_the_same_call_gives_the_same_bits():
    moe, x = make(), paddle.randn([4, 9, C])
    first, second = (moe(x, at(np.ones([4, 9], bool)), Tap()).numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"top_k": 5}, "`top_k` must be from 1 to `experts`, 4, but is 5"),
        ({"top_k": 0}, "`top_k` must be from 1 to `experts`, 4, but is 0"),
        ({"balance_weight": -0.1}, "`balance_weight` must not be negative, but is -0.1"),
    ],
)
def test_what_cannot_be_is_refused_by_a_sentence(options, sentence):
    with pytest.raises(ValueError) as error:
        make(**options)
    assert str(error.value) == sentence


def test_an_expert_that_nobody_chose_learns_nothing_which_is_declared():
    moe, x = make(top_k=1, balance_weight=0.0), paddle.ones([1, 3, C])
    moe.train()
    moe(x, at(np.ones([1, 3], bool)), Tap()).sum().backward()
    assert sum(net.inner.weight.grad is not None for net in moe.experts) == 1
    assert set(MixtureOfExperts.expected_failures) == {"trains *experts*"}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_router_is_as_precise_as_the_rest(dtype):
    tap = Tap(recording=True)
    make().to(dtype=dtype)(paddle.randn([1, 3, C]).astype(dtype), at(np.ones([1, 3], bool)), tap)
    ((_, p),) = [(name, value) for name, value in tap.recorded if name.endswith("router")]
    assert str(p.dtype) == f"paddle.{dtype}"


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
