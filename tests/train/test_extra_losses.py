"""Auxiliary losses are reported beside the loss: in the metrics of a step, in the log, to listeners."""

import pytest

from paddle_tfm.data.batches import collate
from paddle_tfm.protocols import FeedForward
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.train.divided.shared_step import ShardedStep

MIXTURE = "model.feed_forward={name: mixture_of_experts, balance_weight: 0.5}"


def first(trainer, *sizes):
    """Batches of so many rows."""
    examples, begin, results = trainer.run.encoded["train"], 0, []
    for size in sizes:
        results.append(collate(examples[begin : begin + size]))
        begin += size
    return results


def rows(trainer):
    return [row for row in read_rows(trainer.run.folder / "metrics.jsonl") if "loss" in row]


def test_the_balance_loss_of_a_run_is_in_its_log_at_every_step(make_trainer):
    """Between its weight, where the routing is even, and as many times that as there are experts (4), for each of the
    two layers."""
    trainer = make_trainer(MIXTURE)
    trainer.train()
    results = rows(trainer)
    assert len(results) == 12
    for row in results:
        assert 2 * 0.5 * 0.99 < row["balance_loss"] < 2 * 0.5 * 4
        assert row["loss"] > row["balance_loss"]
    assert len({row["balance_loss"] for row in results}) > 6


def test_the_loss_is_the_cross_entropy_and_the_auxiliary_losses(make_trainer):
    """The same model with another weight of balance differs by that alone, in the loss and in what is reported."""
    reported = []
    for weight in (0.25, 0.75):
        spec = f"{{name: mixture_of_experts, balance_weight: {weight}}}"
        trainer = make_trainer(f"model.feed_forward={spec}", folder=str(weight))
        trainer.run.model.train()
        reported.append(trainer.step(1, first(trainer, 6)).row())
    little, much = reported
    assert much["balance_loss"] == pytest.approx(3 * little["balance_loss"], rel=1e-5)
    assert much["loss"] - much["balance_loss"] == pytest.approx(little["loss"] - little["balance_loss"], rel=1e-5)


def test_of_accumulated_batches_it_is_the_mean(make_trainer):
    reported = {}
    for part in ("first", "second", "both"):
        trainer = make_trainer(MIXTURE, "model.dropout=0.0", folder=part)
        trainer.run.model.train()
        one, two = first(trainer, 5, 7)
        batches = {"first": [one], "second": [two], "both": [one, two]}[part]
        reported[part] = trainer.step(1, batches).aux_losses["balance"]
    assert reported["both"] == pytest.approx((reported["first"] + reported["second"]) / 2, rel=1e-5)
    assert reported["first"] != reported["second"]


def test_a_model_without_auxiliary_losses_reports_none(make_trainer):
    for overrides in ([], ["model.feed_forward={name: mixture_of_experts, balance_weight: 0.0}"]):
        trainer = make_trainer(*overrides, folder=str(len(overrides)))
        trainer.run.model.train()
        reported = trainer.step(1, first(trainer, 6)).row()
        assert set(reported) == {"loss", "learning_rate", "gradient_norm", "tokens"}


class Summed(FeedForward):
    """Adds a sum over real tokens to the loss: an auxiliary loss of shards adds up to that of the whole, so that the
    work can be shared."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, info, tap):
        out = self.inner(x, info, tap)
        if self.training:
            tap.add_aux_loss("size", 1e-3 * ((out**2).mean(-1) * info.valid.astype(out.dtype)).sum())
        return out


def test_shards_of_a_batch_add_up(make_trainer, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    trainer = make_trainer("model.dropout=0.0")
    for layer in (*trainer.run.model.encoder.layers, *trainer.run.model.decoder.layers):
        layer.feed_forward = Summed(layer.feed_forward)
    trainer.run.model.train()
    reported = []
    for processes in (1, 2):
        with trainer.sharded_step(processes) as step:
            assert isinstance(step, ShardedStep) == (processes > 1)
            losses = step.backward(1, first(trainer, 7))
        reported.append((losses.loss, losses.aux_losses["size"]))
        step.optimizer.clear_grad()
    assert reported[1] == pytest.approx(reported[0], rel=1e-5)
    assert reported[0][1] > 1e-4
