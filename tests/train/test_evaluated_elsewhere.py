"""An optimizer that evaluates elsewhere than it trains: what is scored and saved, what training goes on from."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from paddle_tfm.runs.logs import read_rows

pytestmark = pytest.mark.reliability

SCHEDULE_FREE = ("train.optimizer=schedule_free", "train.schedule={name: constant, learning_rate: 3e-3}")


def rows(trainer, key):
    return [row[key] for row in read_rows(trainer.run.folder / "metrics.jsonl") if key in row]


def arrays(trainer, checkpoint, part="model"):
    return load_file(trainer.run.folder / "checkpoints" / checkpoint / f"{part}.safetensors")


def test_the_average_is_scored_and_saved_and_training_goes_on_where_it_was(make_trainer):
    """x = (y − (1 − β1) z) / β1 of arXiv:2405.15682 in `best`, y in `last`."""
    trainer = make_trainer(*SCHEDULE_FREE, "evaluate.every=12", "evaluate.best=loss")
    trainer.train()
    best, last, state = arrays(trainer, "best"), arrays(trainer, "last"), arrays(trainer, "last", "optimizer")
    moved = 0
    for path, y in last.items():
        z = state[f"{path}.z"]
        np.testing.assert_allclose(best[path], (y - 0.1 * z) / 0.9, rtol=1e-4, atol=1e-6, err_msg=path)
        moved += not np.allclose(best[path], y, atol=1e-6)
    assert moved > len(last) / 2
    scored, _ = trainer.score(
        trainer.run.encoded["valid"], trainer.run.encoded["valid"][:1]
    )  # the model holds `best` now
    assert scored["loss"] == pytest.approx(rows(trainer, "evaluation")[-1]["loss"], rel=1e-6)


def test_evaluating_does_not_change_the_course(make_trainer):
    often, rarely = (make_trainer(*SCHEDULE_FREE, f"evaluate.every={every}", folder=str(every)) for every in (2, 12))
    for trainer in (often, rarely):
        trainer.train()
    assert rows(often, "loss") == rows(rarely, "loss")
    for path, value in arrays(often, "last").items():
        np.testing.assert_array_equal(value, arrays(rarely, "last")[path], err_msg=path)


def test_the_mean_of_checkpoints_is_one_of_averages(make_trainer, monkeypatch):
    """`train.average` takes the mean of what was evaluated."""
    trainer = make_trainer(*SCHEDULE_FREE, "train.average=2", "evaluate.best=loss")
    seen, score = [], trainer.score.valid

    def watched():
        seen.append({path: value.numpy().copy() for path, value in trainer.run.model.state_dict().items()})
        return score()

    monkeypatch.setattr(trainer.score, "valid", watched)
    trainer.train()
    *_, before, last, mean = seen
    for path, value in mean.items():
        np.testing.assert_allclose(value, (before[path] + last[path]) / 2, rtol=1e-5, atol=1e-7, err_msg=path)


def test_a_moving_average_is_evaluated_in_its_place(make_trainer):
    """It is that of y."""
    trainer = make_trainer(*SCHEDULE_FREE, "train.ema=0.5", "evaluate.every=12")
    trainer.train()
    best, shadow = arrays(trainer, "best"), arrays(trainer, "last", "ema")
    for path, value in best.items():
        np.testing.assert_array_equal(value, shadow[path], err_msg=path)
