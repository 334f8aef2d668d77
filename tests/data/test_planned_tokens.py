"""Target tokens of batches as they are planned, beside the batches themselves."""

import itertools

import numpy as np
import pytest

from paddle_tfm import load_recipe
from paddle_tfm.api import create_registry
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.train.run import create

SMALL = ["task.train=60", "task.valid=4", "task.test=4", "model.d_model=8", "model.num_heads=2", "train.max_tokens=40"]


@pytest.mark.parametrize("batches", ["by_length", "mixed"])
def test_they_are_those_of_the_batches_over_several_epochs(tmp_path, batches):
    (spec,) = load_recipe("dates", [*SMALL, f"train.batches={batches}"]).runs()
    plan = plan_run(spec, create_registry())
    run = create(plan, tmp_path, load_corpus(plan))
    stream = run.stream()
    taken = [next(stream).tokens for _ in range(40)]
    assert stream.epoch > 1
    assert list(itertools.islice(run.stream().planned_tokens(), 40)) == taken and np.std(taken) > 0
    lengths = run.encoded["train"].lengths
    assert (lengths[:, 0] != lengths[:, 1]).any()
