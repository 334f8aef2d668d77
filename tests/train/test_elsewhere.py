"""What a GPU would compute, computed here: `place.on_cpu` answers no, so that no kernel is a CPU's. The numbers are those
of the fast paths, but for rounding."""

import ast
from pathlib import Path

import numpy as np
import paddle
import pytest

import paddle_tfm
import paddle_tfm_plugins
from paddle_tfm import paddle_compat, place
from paddle_tfm.data.batches import collate
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train.evaluate import likelihood

pytestmark = pytest.mark.reliability

OURS = [Path(package.__file__).parent for package in (paddle_tfm, paddle_tfm_plugins)]
# Variants that have a way of their own on a CPU, several to a model.
MODELS = {
    "multihead": ["model.feed_forward={name: relu, inner_dropout: 0.0}"],
    "relative": ["model.position=transformer_xl", "model.head=tied", "model.norm=rms", "train.label_smoothing=0.1"],
    "rotary": ["model.position=rotary", "model.head=adaptive", "model.norm.encoder=batch", "model.norm.decoder=layer"],
    "recurrent": ["model.attention={encoder: recurrent, decoder: recurrent, cross: multihead}", "model.head=pointer"],
    "linear": ["model.attention=linear", "model.feed_forward=swiglu", "train.r_drop=1.0", "model.position=sinusoidal"],
}


@pytest.fixture
def elsewhere(monkeypatch):
    """A function from which on nothing lies on a CPU: no array may be made over a tensor's numbers, and no kernel of
    oneDNN called."""

    def refuse(*arguments, **options):
        raise AssertionError("a kernel that is a CPU's is used elsewhere")

    def leave() -> None:
        monkeypatch.setattr(place, "on_cpu", lambda *tensors: False)
        monkeypatch.setattr(np, "from_dlpack", refuse)
        monkeypatch.setattr(paddle.Tensor, "data_ptr", refuse)

    return leave


def outcome(trainer):
    """Losses of a batch and of three steps, gradients, a likelihood and the outputs of a beam search."""
    run = trainer.run
    batch = collate(run.encoded["train"][:24])
    run.model.train()
    losses = trainer.step.backward(1, [batch])
    gradients = {
        path: parameter.grad.numpy() for path, parameter in run.model.named_parameters() if parameter.grad is not None
    }
    few = run.encoded["valid"][:8]
    scores = likelihood(run.model, few)
    search = run.plan.components["search"].build()
    written = [best.ids for best, *_ in decode_all(run.model, few, search)]
    run.model.train()
    of_steps = [trainer.step(number, [batch]).loss for number in (1, 2, 3)]
    return [losses.loss, *of_steps], gradients, scores.negative_log, written


@pytest.mark.parametrize("overrides", MODELS.values(), ids=MODELS)
def test_what_is_computed_elsewhere_is_the_same(make_trainer, elsewhere, overrides):
    settings = ("model.dropout=0.0", "search={name: beam, size: 3}", *overrides)
    expected = outcome(make_trainer(*settings, folder="here"))
    trainer = make_trainer(*settings, folder="elsewhere")
    elsewhere()
    trainer.step.products = None  # what a step that is made there has
    losses, gradients, negative_log, written = outcome(trainer)
    assert losses == pytest.approx(expected[0], rel=1e-4)
    assert negative_log == pytest.approx(expected[2], rel=1e-5)
    assert written == expected[3]
    assert gradients.keys() == expected[1].keys()
    size = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    for path, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[1][path], atol=1e-5 * size, err_msg=path)


def test_a_whole_training_runs_elsewhere_and_its_dropout_is_keyed(make_trainer, train_in_parts, elsewhere, monkeypatch):
    """Resumed to the bit, though the masks are drawn by Paddle's generator there."""
    elsewhere()
    monkeypatch.setattr(paddle_compat, "reset_peak_memory", lambda: None)
    monkeypatch.setattr(paddle_compat, "peak_memory", lambda: None)
    settings = ("model.dropout=0.2", "train.ema=0.9", "train.shards=2")
    whole = make_trainer(*settings, folder="whole")
    whole.train()
    parts, _ = train_in_parts(*settings, stops=(3,))
    assert whole.run.shards == 1  # Paddle's generator knows of no shards
    for one, other in zip(whole.run.model.parameters(), parts.run.model.parameters(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def asks(source: str) -> list[int]:
    """The lines that ask where a tensor lies, or which device is used."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in ("is_cpu_place", "is_gpu_place"))
        or (isinstance(node, ast.Compare) and "get_device()" in ast.unparse(node))
    ]


def test_one_function_is_asked_where_numbers_lie():
    assert asks("x.place.is_cpu_place()") == asks("paddle.device.get_device() == 'cpu'") == [1]
    for folder in OURS:
        for file in folder.rglob("*.py"):
            if file.name != "place.py":
                assert asks(file.read_text("utf-8")) == [], f"{file} must ask paddle_tfm.place.on_cpu"
