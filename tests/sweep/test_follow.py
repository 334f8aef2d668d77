"""A run that another process trains, followed by its files: here they are written by hand."""

import json

import pytest

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.runs import manifest
from paddle_tfm.sweep.follow import Follower
from paddle_tfm.sweep.sweep import Sweep

REGISTRY = create_registry()


def row(step):
    return json.dumps({"step": step, "loss": 3.0, "tokens": 50}) + "\n"


def evaluation(step):
    return json.dumps({"step": step, "evaluation": {"loss": 2.5}}) + "\n"


@pytest.fixture
def cell(tmp_path):
    recipe = load_recipe("reverse", ["train.steps=6", "evaluate.every=3", "evaluate.metrics=[exact_match]"])
    (cell, *_) = Sweep(recipe, REGISTRY, tmp_path).prepare()
    (cell.folder / "checkpoints/last").mkdir(parents=True)
    return cell


def train(cell, trainings, log, results=None):
    """What a training has written so far."""
    about = {"trainings": [{}] * trainings, "parameters": 7, "examples": {"train": 5}}
    (cell.folder / "about.json").write_text(json.dumps(about))
    (cell.folder / "metrics.jsonl").write_text(log)
    if results:
        (cell.folder / "results.json").write_text(json.dumps(results))


def test_a_resumed_run_reports_what_is_new(cell):
    (cell.folder / "checkpoints/last/state.json").write_text(json.dumps({"step": 3, "evaluated": False}))
    (cell.folder / "checkpoints/last/model.safetensors").touch()
    manifest.write(cell.folder / "checkpoints/last", 3, "")
    before = row(1) + row(2) + row(3)
    train(cell, 1, before + row(4))  # of the session that was interrupted
    events = []
    follower = Follower(cell, REGISTRY, events.append)

    def new():
        follower.look()
        seen = [(event.kind, event.card.step, event.data.get("loss")) for event in events]
        events.clear()
        return seen

    assert new() == []  # nobody trains yet
    train(cell, 2, before)
    follower.look()
    (start,) = events
    assert (start.kind, start.card.step, start.card.steps) == ("start", 3, 6)
    assert (start.card.parameters, start.card.examples, start.card.units) == (7, 5, {"exact_match": "%"})
    events.clear()
    train(cell, 2, before + evaluation(3) + row(4) + row(5) + row(6)[:9])  # the last line is being written
    assert new() == [("evaluation", 3, 2.5)]
    assert new() == []
    train(cell, 2, before + evaluation(3) + row(4) + row(5) + row(6) + evaluation(6))
    assert new() == [("evaluation", 6, 2.5)]
    train(cell, 2, before, {"variant": "default", "diverged": None})
    assert [kind for kind, _, _ in new()] == ["end"]
    assert new() == []


def test_a_run_that_is_tried_again_repeats_no_evaluation(cell):
    events = []
    follower = Follower(cell, REGISTRY, events.append)
    train(cell, 1, row(1) + row(2) + row(3) + evaluation(3) + row(4))
    follower.look()
    # The next process resumes at the checkpoint: the log is cut to it, and written anew.
    (cell.folder / "metrics.jsonl").rename(cell.folder / "before")
    train(cell, 2, row(1) + row(2) + row(3) + evaluation(3))
    follower.look()
    with (cell.folder / "metrics.jsonl").open("a") as file:
        file.write(row(4) + row(5) + row(6) + evaluation(6))
    follower.look()
    assert [(event.kind, event.card.step) for event in events] == [("start", 0), ("evaluation", 3), ("evaluation", 6)]
