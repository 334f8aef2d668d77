"""The loss: cross entropy a token, R-Drop against its formula in NumPy, and auxiliary losses of one pass."""

import gc

import numpy as np
import pytest

from paddle_tfm import randomness
from paddle_tfm.protocols import FeedForward, Tap
from paddle_tfm.protocols.tap import current_tap

MIXTURE = "model.feed_forward={name: mixture_of_experts, balance_weight: 0.5}"


def routers(model):
    return {name: parameter for name, parameter in model.named_parameters() if name.endswith("router.weight")}


def cross_entropy_of(model, batch):
    """Its mean over real target tokens, from the head alone."""
    h, memory = model(batch)
    losses = model.head.loss(h, model.target(batch), memory)
    return (losses * batch.target_valid.astype(losses.dtype)).sum() / batch.tokens


def test_the_loss_contains_the_balance_loss(make_model, make_batch):
    model, batch, tap = make_model(MIXTURE), make_batch(), Tap()
    model.train()
    loss = float(model.loss(batch, tap=tap))
    balance = float(tap.aux_losses["balance"])
    assert balance > 0.5 * len(routers(model)) * 0.99
    assert loss == pytest.approx(float(cross_entropy_of(model, batch)) + balance, rel=1e-6)
    model.eval()
    assert float(model.loss(batch)) == pytest.approx(float(cross_entropy_of(model, batch)), rel=1e-7)


def test_of_a_part_of_a_step_it_is_a_share(make_model, make_batch):
    """Cross entropy over the tokens of the step, auxiliary losses over its batches."""
    model, batch, tap = make_model(MIXTURE), make_batch(), Tap()
    model.train()
    whole = float(model.loss(batch, tap=tap))
    balance = float(tap.aux_losses["balance"])
    share = float(model.loss(batch, tokens=4 * batch.tokens, batches=2))
    assert share == pytest.approx((whole - balance) / 4 + balance / 2, rel=1e-5)


def test_a_norm_adds_its_loss_in_training(make_model, make_batch):
    """Of all norms of the encoder, which are called without a tap; once the pass is over, nobody's losses are taken."""
    model, batch, tap = make_model("model.norm={encoder: regularized_batch, decoder: layer}"), make_batch(), Tap()
    model.train()
    loss = float(model.loss(batch, tap=tap))
    cross_entropy = float(cross_entropy_of(model, batch))  # does not depend on running values, which moved
    assert list(tap.aux_losses) == ["regularized_batch"]
    penalty = float(tap.aux_losses["regularized_batch"])
    assert penalty > 1e-3
    assert loss == pytest.approx(cross_entropy + penalty, rel=1e-6)
    assert current_tap() is None
    model.eval()
    assert float(model.loss(batch)) == pytest.approx(float(cross_entropy_of(model, batch)), rel=1e-7)


def test_its_gradient_reaches_the_router(make_model, make_batch):
    """What the balance loss adds to the gradient of `loss` is its own gradient."""
    model, batch = make_model(MIXTURE), make_batch()
    model.train()
    gradients = []
    for part in ("all", "cross entropy", "balance"):
        tap = Tap()
        loss = model.loss(batch, tap=tap)
        loss = {"all": loss, "cross entropy": cross_entropy_of(model, batch), "balance": tap.aux_losses["balance"]}[
            part
        ]
        loss.backward()
        gradients.append({name: weight.grad.numpy() for name, weight in routers(model).items()})
        model.clear_gradients()
    for name in routers(model):
        complete, of_cross_entropy, of_balance = (each[name] for each in gradients)
        assert abs(of_balance).max() > 1e-4
        assert complete - of_cross_entropy == pytest.approx(of_balance, abs=1e-6)


def test_a_tap_used_again_counts_no_pass_twice(make_model, make_batch):
    model, batch, tap = make_model(MIXTURE), make_batch(), Tap()
    model.train()
    once, again = (float(model.loss(batch, tap=tap)) for _ in range(2))
    assert again == once
    assert once == float(model.loss(batch))
    assert float(tap.aux_losses["balance"]) > 0.5 * 2 * len(routers(model)) * 0.99  # of both passes


class Size(FeedForward):
    """Adds an auxiliary loss, in evaluation too."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, info, tap):
        out = self.inner(x, info, tap)
        tap.add_aux_loss("size", (out**2).mean())
        return out


def test_no_pass_leaves_its_graph_behind(make_model, make_batch):
    """Through every entrance that takes a tap, none being passed: nothing that holds an auxiliary loss stays alive."""
    model, batch = make_model(), make_batch()
    for stack in model.stacks().values():
        stack.layers[0].feed_forward = Size(stack.layers[0].feed_forward)
    passes = {
        "loss": lambda: model.loss(batch).backward(),
        "forward": lambda: model(batch),
        "encode": lambda: model.encode(batch.source, batch.source_valid),
        "decode": lambda: model.decode(batch.target_in, model.start(memory), batch.target_valid),
    }
    memory = model.encode(batch.source, batch.source_valid)
    for name, one_pass in passes.items():
        one_pass()
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, Tap) and each.aux_losses], name


@pytest.mark.parametrize("head", ["linear", "tied", "pointer"])
def test_r_drop_is_half_of_the_papers_loss(make_model, make_batch, head):
    """Σ over tokens of ½ (−log p − log q) + α/4 (KL(p‖q) + KL(q‖p)), padding left out."""
    model, batch, alpha = make_model(f"model.head={head}", "model.dropout=0.4"), make_batch(), 3.0
    model.train()
    kept = []
    head_log_probs = model.head.log_probs
    model.head.log_probs = lambda h, memory: kept.append(head_log_probs(h, memory)) or kept[-1]
    with randomness.random_context(1, 1):
        value = batch.tokens * float(model.loss(batch, r_drop=alpha))
    p, q = (kept[0].numpy().astype("float64")[k::2] for k in (0, 1))
    assert np.abs(p - q).max() > 0.01, "two passes must differ by their dropout"
    target, valid = batch.target_out.numpy(), batch.target_valid.numpy()
    chosen = sum(-np.take_along_axis(one, target[..., None], -1)[..., 0] for one in (p, q))
    divergence = (np.exp(p) * (p - q)).sum(-1) + (np.exp(q) * (q - p)).sum(-1)
    expected = ((0.5 * chosen + 0.25 * alpha * divergence) * valid).sum()
    assert value == pytest.approx(expected, rel=1e-5)


def test_without_dropout_r_drop_is_the_cross_entropy(make_model, make_batch):
    model, batch = make_model("model.dropout=0.0"), make_batch()
    model.train()
    assert float(model.loss(batch, 0.1, r_drop=5.0)) == pytest.approx(float(model.loss(batch, 0.1)), rel=1e-5)
