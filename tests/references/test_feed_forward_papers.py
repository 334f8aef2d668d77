"""Feed-forward networks in training: balance losses and biases of mixtures, the norm inside, and numbers of the
papers."""

import feed_forward_numpy as twins
import numpy as np
import paper_equations as paper
import pytest
from paper_cases import D_FF, D_MODEL, FEED_FORWARD, LENGTH, VALID, positions

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo

GIVEN = {"d_model": D_MODEL, "d_ff": D_FF, "dropout": 0.0, "site": FEED_FORWARD}
DENSE = {"relu": paper.feed_forward_relu, "swiglu": paper.feed_forward_swiglu}


EXPERTS = 4


def run(network, precision, x, valid=VALID, training=False):
    (network.train if training else network.eval)()
    tap = Tap()
    info = TokenInfo(PositionalEncoding(), positions(x.shape[1]), precision.tensor(valid))
    return network(precision.tensor(x), info, tap), tap


@pytest.fixture
def x(rng):
    return rng.normal(size=(3, LENGTH, D_MODEL))


@pytest.mark.parametrize("name", DENSE)
def test_sub_ln_normalizes_before_the_output_matrix(build, registry, precision, x, name):
    network, w = build(
        "feed_forward", name, **GIVEN, inner_norm=lambda width: registry.build("norm", "layer", d_model=width)
    )
    weight, bias = w.pop("inner_norm.weight"), w.pop("inner_norm.bias")
    assert weight.shape == (D_FF,)
    ours, _ = run(network, precision, x)
    precision.same(ours, DENSE[name](x, w, inner=lambda y: paper.layer_norm(y, weight, bias)))


def test_a_gated_network_of_equal_size_is_two_thirds_as_wide(build):
    """2002.05202, section 2: "we reduce the number of hidden units d_ff by a factor of 2/3"."""
    _, w = build("feed_forward", {"name": "swiglu", "equal_parameters": True, "bias": False}, d_model=16, d_ff=96)
    _, relu = build("feed_forward", {"name": "relu", "bias": False}, d_model=16, d_ff=96)
    assert w["gate.weight"].shape == (16, 64)
    assert sum(array.size for array in w.values()) == sum(array.size for array in relu.values())


@pytest.mark.parametrize("k", [1, 2])
def test_balance_loss_is_the_papers_over_real_tokens(build, precision, x, k):
    spec = {"name": "mixture_of_experts", "experts": EXPERTS, "top_k": k, "balance_weight": 0.05}
    network, w = build("feed_forward", spec, **GIVEN)
    _, tap = run(network, precision, x, training=True)
    (loss,) = tap.aux_losses.values()
    logits = x[VALID] @ w["router.weight"]
    precision.same(loss, paper.balance_loss(logits, k, 0.05))


@pytest.mark.parametrize("k, shared", [(2, 1), (4, 0)])
def test_deepseek_moe_is_the_papers(build, precision, x, k, shared):
    """Over three training passes: 2408.15664, algorithm 1, b_i ← b_i + u · sign(mean(c) − c_i), with a large u."""
    spec = {"name": "deepseek_moe", "experts": EXPERTS, "top_k": k, "shared": shared, "bias_rate": 0.3}
    network, w = build("feed_forward", spec, **GIVEN)
    assert ("shared.up.weight" in w) is bool(shared)
    assert not shared or w["shared.up.weight"].shape == (D_MODEL, shared * D_FF)
    b = np.zeros(EXPERTS)
    for _ in range(3):
        ours, _ = run(network, precision, x, training=True)
        expected, load = twins.sparse_experts(x[VALID], w, k, b)
        precision.same(ours.numpy()[VALID], expected)
        b = b + 0.3 * np.sign(load.mean() - load)
        precision.same(network.balance, b)
    ours, _ = run(network, precision, x)
    precision.same(ours.numpy()[VALID], twins.sparse_experts(x[VALID], w, k, b)[0])
    precision.same(network.balance, b)
    assert k == EXPERTS or np.abs(b).max() > 0.2


@pytest.mark.parametrize("k", [1, 2])
def test_the_sequence_wise_loss_is_the_papers(build, precision, x, k):
    """2412.19437, equations 17 to 20: α Σ f_i P_i of one sequence, selected without b; here the mean over sequences."""
    spec = {"name": "deepseek_moe", "experts": EXPERTS, "top_k": k, "sequence_balance_weight": 0.05}
    network, w = build("feed_forward", spec, **GIVEN)
    network.balance.set_value(precision.tensor(np.array([5.0, 0.0, -5.0, 0.0])))
    _, tap = run(network, precision, x, training=True)
    losses = []
    for sentence, valid in zip(x, VALID):
        s = paper.sigmoid(sentence[valid] @ w["router.weight"])
        f = np.zeros(EXPERTS)
        for row in s:
            f[np.argsort(-row)[:k]] += EXPERTS / (k * len(s))
        losses.append(0.05 * f @ (s / s.sum(1, keepdims=True)).mean(0))
    (loss,) = tap.aux_losses.values()
    precision.same(loss, np.mean(losses))
