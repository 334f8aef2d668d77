"""Feed-forward sublayers with the weights of PyTorch's, x-transformers' and Transformers' own."""

import numpy as np
import pytest
from peer_cases import D_FF, D_MODEL, FEED_FORWARD, VALID, copy, linear, single, token_info, transposed

from paddle_tfm.protocols import Tap

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
GIVEN = {"d_model": D_MODEL, "d_ff": D_FF, "dropout": 0.0, "site": FEED_FORWARD}


def run(component, precision, x):
    return component(precision.ours(x), token_info(precision), Tap())


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
def test_relu_squared_is_that_of_x_transformers(build, precision, agree, rng, bias):
    peers = pytest.importorskip("x_transformers")
    ours, w = build("feed_forward", {"name": "relu_squared", "bias": bias}, **GIVEN)
    theirs = peers.FeedForward(D_MODEL, mult=D_FF / D_MODEL, no_bias=not bias, relu_squared=True)
    copy(theirs, transposed(w, {"ff.0.0": "inner", "ff.2": "output"}))
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    agree(run(ours, precision, x), theirs(precision.theirs(x)))


def test_reglu_is_that_of_x_transformers(build, precision, agree, rng):
    """Its first matrix holds the linear part, then the gate."""
    peers = pytest.importorskip("x_transformers")
    ours, w = build("feed_forward", "reglu", **GIVEN)
    theirs = peers.FeedForward(D_MODEL, mult=D_FF / D_MODEL, glu=True, custom_activation=torch.nn.ReLU())
    arrays = {
        f"ff.0.proj.{part}": np.concatenate([w[f"up.{part}"].T, w[f"gate.{part}"].T]) for part in ("weight", "bias")
    }
    copy(theirs, arrays | transposed(w, {"ff.2": "output"}))
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    agree(run(ours, precision, x), theirs(precision.theirs(x)))


# ------------------------------------------------------------------------------------------------- mixture of experts


def experts(w, count, theirs, inner, output):
    pairs = {f"{theirs}{e}.{inner}": f"experts.{e}.inner" for e in range(count)}
    pairs |= {f"{theirs}{e}.{output}": f"experts.{e}.output" for e in range(count)}
    return transposed(w, pairs)


@single
def test_one_expert_of_several_is_the_switch_transformers(build, precision, agree, rng):
    """With room for all tokens in each expert: ours drops none."""
    switch = pytest.importorskip("transformers.models.switch_transformers.modeling_switch_transformers")
    ours, w = build("feed_forward", {"name": "mixture_of_experts", "experts": 4, "top_k": 1, "bias": False}, **GIVEN)
    config = switch.SwitchTransformersConfig(
        d_model=D_MODEL, d_ff=D_FF, num_experts=4, expert_capacity=VALID.size, dropout_rate=0.0,
        router_bias=False,
    )  # fmt: skip
    arrays = transposed(w, {"router.classifier": "router"}) | experts(w, 4, "experts.expert_", "wi", "wo")
    theirs = copy(switch.SwitchTransformersSparseMLP(config), arrays)
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    agree(run(ours, precision, x).numpy()[VALID], theirs(precision.theirs(x))[torch.from_numpy(VALID)])


def test_the_loss_of_balance_is_that_of_the_switch_transformers(build, precision, agree, rng):
    """Of a batch without padding, which its function does not know, all tokens being one group: it takes the mean over
    groups, ours that of the batch. Its shares of tokens go through float32."""
    switch = pytest.importorskip("transformers.models.switch_transformers.modeling_switch_transformers")
    spec = {"name": "mixture_of_experts", "experts": 4, "top_k": 1, "balance_weight": 1.0}
    ours, w = build("feed_forward", spec, **GIVEN)
    ours.train()
    losses, expected = [], []
    for _ in range(3):
        x, tap = rng.normal(size=(*VALID.shape, D_MODEL)), Tap()
        ours(precision.ours(x), token_info(precision, np.ones_like(VALID)), tap)
        p = (precision.theirs(x).flatten(0, 1)[None] @ precision.theirs(w["router.weight"])).softmax(-1)
        losses.append(tap.aux_losses["balance"].numpy().reshape(()))
        expected.append(switch.load_balancing_loss_func(p, p.argmax(-1)).numpy())
    agree(np.stack(losses), np.stack(expected), 1e-6)


@single
def test_two_experts_of_several_are_chosen_and_weighed_as_by_mixtral(build, precision, agree, rng):
    """MixtralTopKRouter; the experts are torch.nn.Linear and ReLU, for Mixtral's own have a gate. (NLLB-MoE's have
    none, but Transformers 5.23 sends its tokens to the first two experts alone.)"""
    mixtral = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")
    ours, w = build("feed_forward", {"name": "mixture_of_experts", "experts": 5, "top_k": 2}, **GIVEN)
    config = mixtral.MixtralConfig(
        hidden_size=D_MODEL, num_attention_heads=4, num_key_value_heads=4, num_local_experts=5, num_experts_per_tok=2
    )
    router = copy(mixtral.MixtralTopKRouter(config), {"weight": w["router.weight"].T})
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    tokens = precision.theirs(x[VALID])
    _, shares, indices = router(tokens)
    outputs = torch.stack(
        [linear(w, f"experts.{e}.output")(linear(w, f"experts.{e}.inner")(tokens).relu()) for e in range(5)], 1
    )  # [N, 5, C]
    expert_outputs = outputs.gather(1, indices[:, :, None].expand(-1, -1, D_MODEL))
    agree(run(ours, precision, x).numpy()[VALID], (expert_outputs * shares[:, :, None]).sum(1))
