"""Auxiliary losses are part of the loss that a model returns, and belong to one pass only."""

import gc

import pytest

from paddle_tfm.protocols import FeedForward, Tap
from paddle_tfm.protocols.tap import current_tap

MIXTURE = "model.feed_forward={name: mixture_of_experts, balance_weight: 0.5}"


def routers(model):
    return {name: parameter for name, parameter in model.named_parameters() if name.endswith("router.weight")}


def test_the_loss_from_python_contains_the_balance_loss(make_model, make_batch):
    """loss / tokens = mean cross entropy + Σ auxiliary losses."""
    model, batch = make_model(MIXTURE), make_batch()
    model.train()
    tap = Tap()
    cross_entropy = float(model.cross_entropy(batch, tap=tap)) / batch.tokens
    balance = float(tap.aux_losses["balance"])
    assert balance > 0.5 * len(routers(model)) * 0.99
    assert float(model.loss(batch)) / batch.tokens == pytest.approx(cross_entropy + balance, rel=1e-6)
    model.eval()
    assert float(model.loss(batch)) == pytest.approx(float(model.cross_entropy(batch)), rel=1e-7)


def test_a_norm_adds_its_loss_in_training(make_model, make_batch):
    """Of all norms of the encoder, which are called without a tap; once the pass is over, nobody's losses are taken."""
    model, batch, tap = make_model("model.norm={encoder: regularized_batch, decoder: layer}"), make_batch(), Tap()
    model.train()
    loss = float(model.loss(batch, tap=tap)) / batch.tokens
    cross_entropy = float(model.cross_entropy(batch)) / batch.tokens  # does not depend on running values, which moved
    assert list(tap.aux_losses) == ["regularized_batch"]
    penalty = float(tap.aux_losses["regularized_batch"])
    assert penalty > 1e-3
    assert loss == pytest.approx(cross_entropy + penalty, rel=1e-6)
    assert current_tap() is None
    model.eval()
    assert float(model.loss(batch)) == pytest.approx(float(model.cross_entropy(batch)), rel=1e-7)


def test_its_gradient_reaches_the_router(make_model, make_batch):
    """What the balance loss adds to the gradient of `loss` is its own gradient times the number of tokens."""
    model, batch = make_model(MIXTURE), make_batch()
    model.train()
    gradients = []
    for part in ("all", "cross entropy", "balance"):
        tap = Tap()
        cross_entropy = model.cross_entropy(batch, tap=tap)
        loss = {"all": model.loss(batch), "cross entropy": cross_entropy, "balance": tap.aux_losses["balance"]}[part]
        loss.backward()
        gradients.append({name: weight.grad.numpy() for name, weight in routers(model).items()})
        model.clear_gradients()
    for name in routers(model):
        complete, of_cross_entropy, of_balance = (each[name] for each in gradients)
        assert abs(of_balance).max() > 1e-4
        assert complete - of_cross_entropy == pytest.approx(batch.tokens * of_balance, abs=2e-5)


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
        "cross_entropy": lambda: model.cross_entropy(batch).backward(),
        "forward": lambda: model(batch),
        "encode": lambda: model.encode(batch.source, batch.source_valid),
        "decode": lambda: model.decode(batch.target_in, model.start(memory), batch.target_valid),
    }
    memory = model.encode(batch.source, batch.source_valid)
    for name, one_pass in passes.items():
        one_pass()
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, Tap) and each.aux_losses], name
