"""What holds on a GPU: the conformance kit, the numbers of the CPU, a training, resuming, mixed precision, decoding."""

import json

import numpy as np
import paddle
import pytest

from paddle_tfm import create_registry, place
from paddle_tfm.data.batches import collate
from paddle_tfm.layers import Linear
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.testing import checks, examine
from paddle_tfm.testing.same_runs import differences
from paddle_tfm.train.evaluate import likelihood
from paddle_tfm.train.run import load_run

pytestmark = pytest.mark.gpu
ON_DEVICES = (
    "attention",
    "position",
    "norm",
    "placement",
    "feed_forward",
    "head",
    "initializer",
    "optimizer",
    "search",
    "kernel",
)
COMPONENTS = [
    pytest.param(entry.kind, entry.name, id=f"{entry.kind} {entry.name}")
    for entry in create_registry()
    if entry.kind in ON_DEVICES and checks(entry.kind) and entry.provider.plugin != "clinic"
]
MODELS = {
    "multihead": [],
    "relative": ["model.position=transformer_xl", "model.head=tied", "model.norm=rms", "train.label_smoothing=0.1"],
    "rotary": ["model.position=rotary", "model.head=adaptive", "model.norm.encoder=batch", "model.norm.decoder=layer"],
    "recurrent": ["model.attention={encoder: recurrent, decoder: recurrent, cross: multihead}", "model.head=pointer"],
    "linear": ["model.attention=linear", "model.feed_forward=swiglu", "train.r_drop=1.0"],
    "experts": ["model.feed_forward=mixture_of_experts"],
}


@pytest.mark.parametrize("kind, name", COMPONENTS)
def test_the_component_passes_the_kit(kind, name):
    report = examine(kind, name, registry=create_registry())
    assert [str(outcome) for outcome in report.failures] == []


def outcome(trainer):
    """The loss of a batch, the gradients, a likelihood and the outputs of a beam search."""
    run = trainer.run
    batch = collate(run.encoded["train"][:24])
    run.model.train()
    loss = trainer.step.backward(1, [batch]).loss
    gradients = {
        path: parameter.grad.numpy() for path, parameter in run.model.named_parameters() if parameter.grad is not None
    }
    few = run.encoded["valid"][:8]
    written = [best.ids for best, *_ in decode_all(run.model, few, run.plan.components["search"].build())]
    return loss, gradients, likelihood(run.model, few).negative_log, written


@pytest.mark.parametrize("overrides", MODELS.values(), ids=MODELS)
def test_loss_gradients_and_outputs_are_those_of_the_cpu(make_trainer, device, overrides):
    settings = ("model.dropout=0.0", "search={name: beam, size: 3}", *overrides)
    paddle.set_device("cpu")
    loss, gradients, negative_log, written = outcome(make_trainer(*settings, folder="cpu"))
    paddle.set_device(device)
    trainer = make_trainer(*settings, folder="device")
    assert all(place.on_cpu(each) == (device == "cpu") for each in trainer.run.model.parameters())
    here = outcome(trainer)
    assert here[0] == pytest.approx(loss, rel=1e-5)
    assert here[2] == pytest.approx(negative_log, rel=1e-5)
    assert here[3] == written
    size = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    for path, gradient in gradients.items():
        np.testing.assert_allclose(here[1][path], gradient, atol=1e-5 * size, err_msg=path)


@pytest.mark.parametrize("overrides", [[], ["model.norm.encoder=batch", "train.ema=0.9", "train.accumulate=2"]])
def test_a_training_learns_and_is_resumed_to_the_bit(make_trainer, train_in_parts, overrides):
    """With dropout, whose masks Paddle's generator draws on a device, by keys."""
    whole = make_trainer(*overrides, folder="whole")
    whole.train()
    rows = [json.loads(row) for row in (whole.run.folder / "metrics.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if "loss" in row]
    assert len(losses) == 24 and np.mean(losses[-4:]) < 0.97 * np.mean(losses[:4])
    assert differences(whole.run.folder, train_in_parts(*overrides, stops=(5, 13))) == []


def test_two_shards_one_after_the_other_are_the_whole_batch(make_trainer):
    trainer = make_trainer("model.dropout=0.0", "train.shards=2")
    batch = collate(trainer.run.encoded["train"][:24])
    trainer.run.model.train()
    whole = trainer.step.backward(1, [batch]).loss
    with trainer.sharded_step() as step:
        assert step is not trainer.step
        step.optimizer.clear_grad(set_to_zero=False)
        assert step.backward(1, [batch]).loss == pytest.approx(whole, rel=1e-5)


def test_what_is_trained_there_is_used_on_a_cpu(make_trainer):
    trainer = make_trainer("train.steps=8")
    trainer.train()
    texts = [each.example.source for each in trainer.run.encoded["valid"][:4]]
    registry = create_registry()
    there = load_run(trainer.run.folder, registry).translate(texts)
    paddle.set_device("cpu")
    assert load_run(trainer.run.folder, registry).translate(texts) == there


# ----------------------------------------------------------------------------------------------------- mixed precision


@pytest.fixture
def half(device):
    """Skips where Paddle's autocast does nothing."""
    if device == "cpu":
        pytest.skip("Paddle's autocast does nothing on a CPU")


@pytest.mark.parametrize("overrides", MODELS.values(), ids=MODELS)
def test_mixed_precision_is_near_float32(make_trainer, half, overrides):
    """Losses of twelve steps. Parameters and their gradients are float32."""
    losses = {}
    for precision in ("float32", "bfloat16"):
        trainer = make_trainer("model.dropout=0.0", f"train.precision={precision}", *overrides, folder=precision)
        trainer.run.model.train()
        batch = collate(trainer.run.encoded["train"][:40])
        losses[precision] = [trainer.step(number, [batch]).loss for number in range(1, 13)]
        assert {each.grad.dtype for each in trainer.step.parameters if each.grad is not None} == {paddle.float32}
    np.testing.assert_allclose(losses["bfloat16"], losses["float32"], rtol=3e-2)
    assert losses["bfloat16"] != losses["float32"]


def test_in_mixed_precision_the_gradient_of_a_bias_has_the_digits_of_its_sum(half):
    """Over many rows: a sum in bfloat16 would stop growing at 256 times its terms."""
    paddle.seed(3)
    layer, x = Linear(8, 16), paddle.rand([20_000, 8])
    gradients = []
    for enable in (False, True):
        with paddle.amp.auto_cast(enable=enable, dtype="bfloat16"):
            layer(x).astype("float32").sum().backward()
        gradients.append(layer.bias.grad.numpy())
        layer.clear_gradients()
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-2)
