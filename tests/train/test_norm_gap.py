"""The train–inference discrepancy of norms with running statistics, logged at each evaluation."""

import numpy as np
import paddle
import pytest

from paddle_tfm import randomness
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.train import running_statistics
from paddle_tfm_plugins.norm.batch import BatchNorm

pytestmark = pytest.mark.reliability

BATCH = "model.norm={encoder: batch, decoder: layer}"
NAMES = ["norm_discrepancy_mean", "norm_discrepancy_deviation"]


def rows(trainer):
    return [row for row in read_rows(trainer.run.folder / "metrics.jsonl") if "evaluation" in row]


def by_hand(model, trainer, monkeypatch):
    """The same numbers from what each BatchNorm is given, in NumPy: running statistics against those of real tokens."""
    seen, forward = {}, BatchNorm.forward
    path = {id(layer): name for name, layer in model.named_sublayers()}

    def watched(norm, x, valid=None, positions=None):
        tokens = x.numpy().astype("float64")[valid.numpy()]
        sigma = np.sqrt(tokens.var(0) + norm.eps)
        running = np.sqrt(norm.running_variance.numpy().astype("float64") + norm.eps)
        numbers = np.abs(norm.running_mean.numpy() - tokens.mean(0)) / sigma, np.abs(running / sigma - 1)
        seen.setdefault(path[id(norm)], []).append([part.mean() for part in numbers])
        return forward(norm, x, valid, positions)

    start = {name: buffer.numpy() for name, buffer in model.named_buffers()}
    monkeypatch.setattr(BatchNorm, "forward", watched)
    model.train()
    stream = trainer.run.stream()
    for number in range(running_statistics.COMPARED_BATCHES):
        with paddle.no_grad(), randomness.random_context(trainer.run.seed, trainer.run.step, number):
            model(next(stream).tensors())
        for name, buffer in model.named_buffers():
            buffer.set_value(start[name])
    monkeypatch.undo()
    return {name: np.mean(values, 0) for name, values in seen.items()}


def test_it_is_that_of_the_last_weights_on_training_batches(make_trainer, monkeypatch):
    trainer = make_trainer("model.norm=batch", "train.steps=8")
    trainer.train()
    assert [row["step"] for row in rows(trainer)] == [4, 8]
    last, model = rows(trainer)[-1], trainer.run.model
    model.set_state_dict(paddle_state(trainer, "last"))
    expected = by_hand(model, trainer, monkeypatch)
    assert set(last["norms"]) == set(expected)
    assert len(expected) == 7
    for path, (mean, deviation) in expected.items():
        assert last["norms"][path] == pytest.approx({"mean": mean, "deviation": deviation}, rel=1e-3), path
    overall = np.mean(list(expected.values()), 0)
    assert [last["evaluation"][name] for name in NAMES] == pytest.approx(overall, rel=1e-3)
    assert min(overall) > 0.01


def paddle_state(trainer, name):
    from paddle_tfm.runs import checkpoint

    return checkpoint.load_part(trainer.run.folder / "checkpoints" / name, "model")


def test_it_reaches_visualdl_and_listeners_but_not_the_results(make_trainer):
    from visualdl import LogReader

    trainer, heard = make_trainer(BATCH), []
    emit = trainer.emit

    def listen(event, **arguments):
        if event == "on_evaluation_end":
            heard.append(arguments["metrics"])
        emit(event, **arguments)

    trainer.emit = listen
    results = trainer.train()
    (file,) = (trainer.run.folder / "vdl").iterdir()
    reader = LogReader(file_path=str(file))
    for name in NAMES:
        curve = reader.get_data("scalar", f"valid/{name}")
        logged = [row["evaluation"][name] for row in rows(trainer)]
        assert [point.id for point in curve] == [4, 8, 12]
        assert [point.value for point in curve] == pytest.approx(logged, rel=1e-6)
        assert [metrics[name] for metrics in heard] == logged
        assert name not in results["valid"] and name not in results["test"]


def test_looking_changes_nothing_of_the_training(make_trainer, monkeypatch):
    measuring = make_trainer(BATCH, "train.steps=8", folder="measuring")
    results = measuring.train()
    monkeypatch.setattr("paddle_tfm.train.trainer.discrepancies", lambda *arguments: {})
    plain = make_trainer(BATCH, "train.steps=8", folder="plain")
    assert plain.train()["test"] == results["test"]
    state, other = paddle_state(measuring, "last"), paddle_state(plain, "last")
    assert state.keys() == other.keys() and any("running" in name for name in state)
    for name, value in state.items():
        np.testing.assert_array_equal(other[name].numpy(), value.numpy(), err_msg=name)
    assert all("norms" not in row and not set(NAMES) & set(row["evaluation"]) for row in rows(plain))


def test_norms_without_running_statistics_cost_no_pass(make_trainer, monkeypatch):
    trainer = make_trainer("model.norm={encoder: rms, decoder: layer}")
    monkeypatch.setattr(running_statistics.randomness, "random_context", None)  # what a pass would need
    assert running_statistics.discrepancies(trainer.run.model, trainer.run.stream(), 1, 1) == {}


def test_a_norm_that_has_no_mean_counts_where_it_can(make_trainer):
    trainer = make_trainer(
        "model.norm={encoder: power, decoder: {self: batch, cross: layer, feed_forward: layer}}", "train.steps=4"
    )
    trainer.train()
    row = rows(trainer)[-1]
    kinds = [sorted(each) for each in row["norms"].values()]
    assert kinds.count(["deviation"]) == 3 and kinds.count(["deviation", "mean"]) == len(kinds) - 3 > 0
    means = [each["mean"] for each in row["norms"].values() if "mean" in each]
    deviations = [each["deviation"] for each in row["norms"].values()]
    assert row["evaluation"]["norm_discrepancy_mean"] == pytest.approx(np.mean(means))
    assert row["evaluation"]["norm_discrepancy_deviation"] == pytest.approx(np.mean(deviations))
