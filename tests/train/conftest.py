"""Small real runs of the task `reverse`."""

from pathlib import Path

import pytest

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Trainer

TINY = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}",
    "model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.dropout=0.1", "train.max_tokens=128", "train.steps=12", "evaluate.every=4", "evaluate.examples=10",
    "train.schedule={name: inverse_sqrt, peak: 3e-3, warmup: 4}",
]  # fmt: skip


@pytest.fixture(scope="session")
def registry():
    return create_registry()


@pytest.fixture
def make_run(registry, tmp_path):
    def make(*overrides, folder="run"):
        recipe: Recipe = load_recipe("base", [*TINY, *overrides])
        plan = plan_run(recipe.runs()[0], registry).require_sound("base")
        return create(plan, Path(tmp_path) / folder, load_corpus(plan))

    return make


@pytest.fixture
def make_trainer(make_run, registry):
    def make(*overrides, folder="run", **options):
        run = make_run(*overrides, folder=folder)
        return Trainer(run, registry.plugins, **options)

    return make
