"""Small real runs of the task `reverse`."""

from pathlib import Path

import pytest

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Interrupted, Trainer

# The shortest `max_length` that holds every text: how far a search of an untrained model goes is most of a run's cost.
TINY = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}",
    "model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.max_length=10", "model.dropout=0.1", "train.max_tokens=128", "train.steps=12", "evaluate.every=4", "evaluate.examples=10",
    "train.schedule={name: inverse_sqrt, peak: 3e-3, warmup: 4}",
]  # fmt: skip


@pytest.fixture(scope="session")
def registry():
    return create_registry()


@pytest.fixture
def make_run(registry, tmp_path):
    def make(*overrides, folder="run", registry=registry):
        recipe: Recipe = load_recipe("base", [*TINY, *overrides])
        plan = plan_run(recipe.runs()[0], registry).require_sound("base")
        place = Path(tmp_path) / folder
        return create(plan, place, load_corpus(plan), resume=(place / "identity.json").exists())

    return make


@pytest.fixture
def make_trainer(make_run, registry):
    def make(*overrides, folder="run", registry=registry, **options):
        run = make_run(*overrides, folder=folder, registry=registry)
        return Trainer(run, registry.plugins, **options)

    return make


@pytest.fixture
def train_in_parts(make_trainer):
    """Train a run that is stopped after each of the steps `stops`, and resumed each time by newly created objects, as
    another process would: the last trainer and its results."""

    def train(*overrides, stops, folder="parts"):
        for stop in stops:
            trainer = make_trainer(*overrides, folder=folder)
            trainer.stop = lambda run=trainer.run, stop=stop: run.step >= stop
            with pytest.raises(Interrupted):
                trainer.train(resume=True)
            assert trainer.run.step == stop
        trainer = make_trainer(*overrides, folder=folder)
        return trainer, trainer.train(resume=True)

    return train
