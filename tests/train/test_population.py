"""Running statistics that are re-estimated: what they are, when, and that training continues as if they were not."""

import numpy as np
import pytest

from paddle_tfm.runs import checkpoint
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.train import running_statistics
from paddle_tfm_plugins.norm.batch import BatchNorm
from paddle_tfm_plugins.norm.power import PowerNorm

pytestmark = pytest.mark.reliability

PRECISE = "model.norm={encoder: {name: batch, population: 3}, decoder: layer}"
PLAIN = "model.norm={encoder: batch, decoder: layer}"
MIXED = "train.batches=mixed"


def state(trainer, name):
    return checkpoint.load_arrays(trainer.run.folder / "checkpoints" / name)


def running(model):
    """The running statistics as they are, and where they are kept."""
    return {name: (buffer.numpy(), buffer) for name, buffer in model.named_buffers() if "running" in name}


def watch(monkeypatch, norm):
    """The real tokens that `norm` is given from now on, batch by batch."""
    seen, forward = [], BatchNorm.forward

    def watched(layer, x, valid=None, positions=None):
        if layer is norm:
            seen.append(x.numpy().astype("float64")[valid.numpy()])
        return forward(layer, x, valid, positions)

    monkeypatch.setattr(BatchNorm, "forward", watched)
    return seen


@pytest.mark.parametrize("momentum", ["0.1", "1.0e-4", "cumulative"])
def test_they_are_those_of_all_tokens_of_the_batches(make_trainer, monkeypatch, momentum):
    """Of the mean of 1000 that was there before nothing is left; a count of batches stays."""
    trainer = make_trainer(f"model.norm={{encoder: {{name: batch, momentum: {momentum}}}, decoder: layer}}")
    model = trainer.run.model
    norm = model.encoder.final_norm
    for buffer in model.buffers():
        buffer.set_value(buffer + 1000.0)
    seen = watch(monkeypatch, norm)
    running_statistics.estimate_all(model, trainer.run.stream(), 1)
    tokens = np.concatenate(seen)
    assert len(seen) == running_statistics.POOLED_BATCHES and len({len(each) for each in seen}) > 2
    np.testing.assert_allclose(norm.running_mean.numpy(), tokens.mean(0), atol=1e-4)
    np.testing.assert_allclose(norm.running_variance.numpy(), tokens.var(0), rtol=1e-4)
    assert [buffer.item() for name, buffer in model.named_buffers() if "batches" in name] in ([], [1000.0] * 3)


def test_training_goes_on_as_if_nothing_had_been_estimated(make_trainer):
    precise, plain = make_trainer(PRECISE, folder="precise"), make_trainer(PLAIN, folder="plain")
    precise.train()
    plain.train()
    one, other = state(precise, "last"), state(plain, "last")
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    assert any((state(precise, "best")[name] != array).any() for name, array in one.items() if "running" in name)
    losses = [
        [row["loss"] for row in read_rows(each.run.folder / "metrics.jsonl") if "loss" in row]
        for each in (precise, plain)
    ]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("more", [[], ["train.ema=0.9"], ["train.average=2", MIXED]])
def test_what_is_evaluated_has_the_statistics_of_its_own_weights(make_trainer, more):
    """Of the trained ones, of their moving average, and of the mean of the last."""
    trainer = make_trainer(PRECISE, "evaluate.best=loss", *more)
    results = trainer.train()
    model = trainer.run.model
    checkpoint.set_arrays(model, state(trainer, "best"))
    stored = running(model)
    for _, buffer in stored.values():
        buffer.set_value(buffer * 0.0 + 7.0)
    with running_statistics.estimated(model, trainer.run.stream(), trainer.run.seed):
        for name, (value, buffer) in stored.items():
            np.testing.assert_allclose(buffer.numpy(), value, rtol=1e-5, atol=1e-6, err_msg=name)
    assert all((buffer.numpy() == 7.0).all() for _, buffer in stored.values())
    assert results["valid"]["loss"] > 0


def test_norms_that_do_not_ask_and_what_they_count_stay(make_trainer):
    trainer = make_trainer(
        "model.norm={encoder: {name: batch, population: 2}, decoder: {self: power, cross: batch, feed_forward: layer}}"
    )
    model = trainer.run.model
    before = {name: buffer.numpy() for name, buffer in model.named_buffers()}
    with running_statistics.estimated(model, trainer.run.stream(), 1):
        changed = {name for name, buffer in model.named_buffers() if (buffer.numpy() != before[name]).any()}
    assert changed and all(name.startswith("encoder") for name in changed)
    assert any(isinstance(layer, PowerNorm) for layer in model.sublayers())


def test_a_pass_that_fails_leaves_every_statistic(make_trainer):
    trainer = make_trainer(PRECISE)
    model = trainer.run.model
    before = {name: buffer.numpy() for name, buffer in model.named_buffers()}

    class Broken:
        def __next__(self):
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"), running_statistics.estimated(model, Broken(), 1):
        pass
    for name, buffer in model.named_buffers():
        np.testing.assert_array_equal(buffer.numpy(), before[name])
