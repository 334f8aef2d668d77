"""A step whose loss or gradient is no number: it is not made, and where it comes from is named."""

import json

import numpy as np
import paddle
import pytest

from paddle_tfm.cli import main
from paddle_tfm.data.batches import ARRAYS
from paddle_tfm.runs import checkpoint
from paddle_tfm.train import divergence
from paddle_tfm.train.trainer import Interrupted

WILD = ("train.schedule={name: constant, learning_rate: 1e30}", "train.clip_norm=null")


def poisoned(trainer, step):
    """Its first decoder's feed-forward computes NaN in this step, for whatever goes in."""
    layer = trainer.run.model.decoder.layers[0].feed_forward
    forward = layer.forward

    def forward_of_step(*inputs, **more):
        output = forward(*inputs, **more)
        wrong = layer.training and paddle.is_grad_enabled() and trainer.run.step + 1 == step
        return output * float("nan") if wrong else output

    layer.forward = forward_of_step
    return trainer


def weights(trainer):
    return {name: tensor.numpy().copy() for name, tensor in trainer.run.model.state_dict().items()}


def equal(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.reliability
def test_the_model_before_the_step_and_its_batches_are_kept_and_computed_again(make_trainer, capsys):
    trainer = make_trainer(*WILD)
    results = trainer.train()
    failed = results["steps"] + 1
    folder = trainer.run.folder / "checkpoints" / "diverged"
    state = divergence.read_kept(folder)[0]
    assert (state["step"], state["failed_step"]) == (failed - 1, failed)
    assert state["sentence"] == results["diverged"]
    before = make_trainer(*WILD, folder="before")  # a run that was stopped there
    before.stop = lambda: before.run.step == failed - 1
    with pytest.raises(Interrupted):
        before.train()
    equal(weights(before), checkpoint.load_arrays(folder))
    (batch,), (expected,) = divergence.read_kept(folder)[1], before.next_batches()
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(batch, name), getattr(expected, name), err_msg=name)
    assert (batch.extra, batch.tokens) == (expected.extra, expected.tokens)

    with pytest.raises(SystemExit) as left:
        main(["check", str(trainer.run.folder), "--json"])
    (checked,) = json.loads(capsys.readouterr().out)
    assert left.value.code == 0
    assert f"{results['diverged']}; it began with {state['origin']}" in [
        each["sentence"] for each in checked["findings"]
    ]
    layers, texts = checked["diverged"]["layers"], checked["diverged"]["texts"]
    assert f"{len(batch.index)} sentences and {batch.tokens} target tokens" in texts[0]
    wrong = [layer["layer"] for layer in layers if layer["not_finite"]]
    assert len(layers) > len(wrong) and f"the output of {wrong[0]} (" in state["origin"]
    for name in ("batches.safetensors", "state.json"):
        content = bytearray((folder / name).read_bytes())
        content[-9] ^= 1
        (folder / name).write_bytes(content)
        with pytest.raises(SystemExit) as left:
            main(["check", str(trainer.run.folder)])
        said = " ".join(capsys.readouterr().out.split())
        assert left.value.code == 1 and f"bad diverged {folder / name}: damaged" in said and "not finite" not in said
        content[-9] ^= 1
        (folder / name).write_bytes(content)


def test_the_first_layer_that_is_not_finite_is_named(make_trainer):
    said = []
    trainer = poisoned(make_trainer(report=said.append), 3)
    assert trainer.train()["diverged"] == "the loss was no number at step 3 (nan)"
    layer, layers = trainer.run.model.decoder.layers[0].feed_forward, trainer.run.model.named_sublayers()
    path = next(path for path, each in layers if each is layer)
    assert f"it begins with the output of {path} (" in said[0] and "and so were some of its inputs" not in said[0]
    assert "`paddle-tfm check " in said[0]


def test_a_gradient_that_is_no_number_is_named(make_trainer):
    said = []
    trainer = make_trainer(report=said.append)
    path, parameter = list(trainer.run.model.named_parameters())[3]
    parameter.register_hook(lambda gradient: gradient * float("inf") if trainer.run.step == 1 else gradient)
    assert "gradient norm was no number at step 2" in trainer.train()["diverged"]
    assert f"it begins with the gradient of {path}; the outputs of all layers were finite" in said[0]
