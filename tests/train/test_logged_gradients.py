"""`train.gradient_norms`: the norm of each parameter's gradient, at the steps that log it."""

import math

import pytest

from paddle_tfm.runs.logs import read_rows


def logged(trainer):
    return {row["step"]: row for row in read_rows(trainer.run.folder / "metrics.jsonl") if "gradient_norms" in row}


def test_they_are_logged_at_both_ends_and_every_nth_step_and_change_nothing(make_trainer):
    plain, every = make_trainer("train.steps=8", folder="plain"), make_trainer(
        "train.steps=8", "train.gradient_norms=3", folder="every"
    )  # fmt: skip
    results = plain.train(), every.train()
    assert results[0]["test"] == results[1]["test"]
    assert list(logged(plain)) == [1, 8] and list(logged(every)) == [1, 3, 6, 8]
    for row in logged(every).values():
        assert math.hypot(*row["gradient_norms"].values()) == pytest.approx(row["gradient_norm"], rel=1e-4)
    names = {name for name, parameter in every.run.model.named_parameters()}
    assert set(logged(every)[6]["gradient_norms"]) <= names
    assert logged(every)[3]["gradient_norms"] != logged(every)[6]["gradient_norms"]
