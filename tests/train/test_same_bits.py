"""The same recipe and seed give the same bits, whatever the number of processes; what may change them is recorded."""

import contextlib
import io
import json

import pytest

from paddle_tfm import processes
from paddle_tfm.cli import main
from paddle_tfm.kernels.cpu import library
from paddle_tfm.runs.changes import changes, rounding
from paddle_tfm.runs.identity import identity
from paddle_tfm.testing.same_runs import differences

pytestmark = pytest.mark.reliability

# Batches of some hundred tokens, so that kernels have enough rows to divide their work among threads.
WIDE = (
    "model.d_model=64", "train.max_tokens=1100", "train.steps=5", "evaluate.every=3", "evaluate.examples=20",
    "model.dropout=0.2",
)  # fmt: skip
RECIPES = {
    "sharded": ["train.shards=3", "train.accumulate=2", "train.ema=0.9"],
    "bfloat16": ["train.shards=2", "train.products=bfloat16"],
    "not to be sharded": ["train.shards=2", "model.norm.encoder=batch", "model.norm.decoder=layer"],
}


@pytest.fixture
def threads(monkeypatch):
    """A function that sets the number of threads, as a user does."""

    def set_threads(number: int) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", str(number))
        processes.set_threads(number)

    yield set_threads
    processes.set_threads(1)


@pytest.mark.parametrize("overrides", RECIPES.values(), ids=RECIPES)
def test_the_number_of_threads_changes_no_bit_of_a_recipe_that_says_its_shards(make_trainer, threads, overrides):
    if "train.products=bfloat16" in overrides and library.why_not("bfloat16"):
        pytest.skip(str(library.why_not("bfloat16")))
    folders = []
    for number in (1, 2):
        threads(number)
        trainer = make_trainer(*WIDE, *overrides, folder=str(number))
        trainer.train()
        folders.append(trainer.run.folder)
    assert differences(*folders) == []


def test_shards_that_a_model_does_not_allow_are_said(make_trainer):
    sentences = []
    trainer = make_trainer(*WIDE, *RECIPES["not to be sharded"], report=sentences.append)
    assert trainer.shards() == 1
    assert sentences == [
        "default/seed-1: train.shards=2 counts as 1, since parts of a batch are not the whole: training changes the buffer "
        "encoder.layers.0.placement.norms.0.running_mean"
    ]
    quiet = make_trainer(*WIDE, *RECIPES["sharded"], folder="quiet", report=sentences.append)
    assert quiet.shards() == 3 and len(sentences) == 1


def test_a_training_keeps_the_shards_with_which_it_began(make_trainer, train_in_parts, threads):
    """Begun on two threads and ended on one, with the bits of one that has two to its end."""
    threads(2)
    whole = make_trainer(*WIDE, folder="whole")
    whole.train()
    with pytest.raises(RuntimeError, match="stop here"):
        first = make_trainer(*WIDE, folder="parts")
        first.stop = lambda: _raise_at(first.run, 2)
        first.train()
    threads(1)
    parts, _ = train_in_parts(*WIDE, stops=(4,), folder="parts")
    stored = json.loads((parts.run.folder / "identity.json").read_text())
    assert (stored["shards"], stored["threads"]) == (2, 1)
    assert differences(whole.run.folder, parts.run.folder) == []


def _raise_at(run, step):
    if run.step == step:
        raise RuntimeError("stop here")  # before anything is saved: it begins again, with its shards
    return False


def test_threads_are_noted_and_refuse_nothing(make_run, threads):
    run = make_run()
    threads(1)
    one = identity(run.plan, {}, 1)
    threads(4)
    four = identity(run.plan, {}, 1)
    assert (one["threads"], four["threads"], identity(run.plan, {}, 2)["threads"]) == (1, 4, 2)
    assert one["hash"] != four["hash"]
    assert changes(one, four) == []
    assert rounding(one, four) == ["the threads of each shard of its batches were 1 and now are 4"]
    assert rounding(one, identity(run.plan, {}, 2)) == [
        "its batches were divided into 1 shard and now into 2",
        "the threads of each shard of its batches were 1 and now are 2",
    ]
    assert identity(make_run("train.shards=1", folder="set").plan, {}, 1)["threads"] == 1


def test_a_run_is_evaluated_as_it_was_trained_on_any_number_of_threads(make_trainer, threads):
    """What divides its batches decides the order of sums over all examples, and so their last bits."""
    threads(3)
    trainer = make_trainer(*WIDE, "task.test=3000", "task.max_length=8", "evaluate.metrics=[perplexity, exact_match]")
    results, folder = trainer.train(), trainer.run.folder
    threads(1)
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
        main(["evaluate", str(folder), "--json"])
    assert json.loads(out.getvalue())["metrics"] == results["test"]
