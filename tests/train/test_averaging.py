"""Moving averages, means of checkpoints, early stopping: against what the plain course of the same training holds."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from paddle_tfm.runs import manifest
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.train import running_statistics
from paddle_tfm.train.evaluate import likelihood
from paddle_tfm.train.finish import mean
from paddle_tfm.train.run import load_run
from paddle_tfm.train.trainer import Interrupted

pytestmark = pytest.mark.reliability


def weights(trainer):
    return {path: parameter.numpy().copy() for path, parameter in trainer.run.model.named_parameters()}


def evaluations(trainer):
    return [row["evaluation"] for row in read_rows(trainer.run.folder / "metrics.jsonl") if "evaluation" in row]


def test_the_moving_average_is_that_of_the_weights_after_each_step(make_trainer):
    """They are evaluated and kept; the course of the training is the plain one's."""
    trainer = make_trainer("train.ema=0.6", "train.steps=6", "evaluate.every=3", "evaluate.best=loss")
    expected, seen = weights(trainer), []
    update = trainer.state.ema.update

    def watched(step):
        update(step)
        seen.append(weights(trainer))

    trainer.state.ema.update = watched
    trainer.train()
    for step, now in enumerate(seen, 1):
        decay = min(0.6, (1 + step) / (10 + step))
        expected = {path: decay * expected[path] + (1 - decay) * now[path] for path in now}
    best = load_file(trainer.run.folder / "checkpoints" / "best" / "model.safetensors")
    last = load_file(trainer.run.folder / "checkpoints" / "last" / "model.safetensors")
    assert trainer.state.progress.best_step == 6
    plain = make_trainer("train.steps=6", "evaluate.every=3", folder="plain")
    plain.train()
    losses = [
        [row["loss"] for row in read_rows(t.run.folder / "metrics.jsonl") if "loss" in row] for t in (plain, trainer)
    ]
    assert losses[0] == losses[1] and evaluations(plain) != evaluations(trainer)
    for path, value in expected.items():
        np.testing.assert_allclose(best[path], value, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(last[path], seen[-1][path])  # training continues from the raw weights


SHAKY = "train.schedule={name: constant, learning_rate: 0.1}"  # the mean of such weights is better than the last


@pytest.mark.parametrize("rate", [SHAKY, "train.clip_norm=1.0"])
def test_the_mean_of_the_last_checkpoints(make_trainer, registry, monkeypatch, rate):
    said = []
    trainer = make_trainer("train.average=2", "evaluate.best=loss", rate, report=said.append)
    kept, forget = {}, manifest.keep_snapshots

    def look(folder, steps):
        for step in steps:
            kept[step] = load_file(trainer.run.folder / "checkpoints" / f"step-{step}" / "model.safetensors")
        forget(folder, steps)

    monkeypatch.setattr(manifest, "keep_snapshots", look)
    results = trainer.train()
    assert results["averaged"]["steps"] == [8, 12] and set(kept) == {4, 8, 12}
    assert not list((trainer.run.folder / "checkpoints").glob("step-*")), "they are not needed any more"
    expected = mean([kept[8], kept[12]])
    trainer.run.model.set_state_dict(expected)
    known = likelihood(trainer.run.model, trainer.run.encoded["valid"])
    assert results["averaged"]["valid"]["loss"] == pytest.approx(known.negative_log / known.tokens, rel=1e-6)
    better = results["averaged"]["valid"]["loss"] < min(row["loss"] for row in evaluations(trainer))
    assert results["averaged"]["is_best"] is better is (rate == SHAKY)
    assert ("is the best checkpoint" if better else "is no better than step") in " ".join(said)
    best = load_file(trainer.run.folder / "checkpoints" / "best" / "model.safetensors")
    chosen = expected if better else kept[results["best_step"]]
    np.testing.assert_array_equal(best["target_embedding.weight"], chosen["target_embedding.weight"])
    run = load_run(trainer.run.folder, registry)
    assert likelihood(run.model, trainer.run.encoded["valid"]).negative_log / known.tokens == pytest.approx(
        results["valid"]["loss"], rel=1e-6
    )


def test_running_statistics_are_estimated_anew_for_averaged_weights(make_trainer, monkeypatch):
    """With a broken running mean in every checkpoint, the averaged model still knows the mean of its own
    activations."""
    monkeypatch.setattr(running_statistics, "POOLED_BATCHES", 5)
    trainer = make_trainer("train.average=2", "model.norm=batch", "train.steps=8")
    mended = {}

    def poisoned(states):
        averages = mean(states)
        return {name: value + 1000.0 if "running_mean" in name else value for name, value in averages.items()}

    monkeypatch.setattr("paddle_tfm.train.finish.mean", poisoned)
    score = trainer.score.valid

    def look():
        mended.update({name: value.numpy() for name, value in trainer.run.model.state_dict().items()})
        return score()

    trainer.score.valid = look
    trainer.train()
    means = [value for name, value in mended.items() if "running_mean" in name]
    assert means and all(np.abs(value).max() < 10 for value in means)


def test_mean_of_arrays_is_exact_in_double_precision():
    states = [{"a": np.full(3, value, np.float32)} for value in (2.0**24, 1.0, 1.0)]  # in single, 2^24 + 1 is 2^24
    np.testing.assert_array_equal(mean(states)["a"], (2.0**24 + 2) / 3)
    assert mean(states)["a"].dtype == np.float32


def test_training_stops_when_patience_ends(make_trainer):
    """Under a rate of (nearly) zero nothing improves after the first evaluation."""
    still = "train.schedule={name: constant, learning_rate: 1.0e-30}"
    said = []
    trainer = make_trainer("evaluate.patience=2", "train.steps=40", still, report=said.append)
    results = trainer.train()
    assert results["steps"] == 12 and results["best_step"] == 4, "evaluated at 4, 8 and 12"
    assert said[0] == "default/seed-1: stopped early at step 12: exact_match was never better than at step 4"
    assert make_trainer("train.steps=16", still, folder="b").train()["steps"] == 16


def test_stopped_while_the_mean_is_judged_or_the_test_split_scored(make_trainer):
    settings = ("train.average=2", SHAKY, "evaluate.best=loss", "train.steps=8")
    expected = make_trainer(*settings, folder="whole").train()
    for calls in (1, 3):
        first, asked = make_trainer(*settings, folder=str(calls)), []
        first.stop = lambda run=first.run, asked=asked, calls=calls: (
            run.step == 8 and len(asked.append(1) or asked) > calls
        )
        with pytest.raises(Interrupted):
            first.train()
        results = make_trainer(*settings, folder=str(calls)).train(resume=True)
        for key in ("valid", "test", "averaged", "best_step"):
            assert results[key] == expected[key]
