"""Saving takes little of a training, at the interval at which a shipped recipe saves."""

import time
from pathlib import Path

import pytest

from paddle_tfm import load_recipe
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.runs import checkpoint
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Trainer


@pytest.mark.slow
def test_saving_takes_less_than_three_percent(registry, tmp_path, monkeypatch):
    """`best` and `last` after the 100 steps of quickstart's interval, beside these steps; each save a best one."""
    overrides = ["task.valid=20", "task.test=20", "train.steps=100"]
    plan = plan_run(load_recipe("quickstart", overrides).runs()[0], registry)
    run = create(plan, Path(tmp_path) / "run", load_corpus(plan))
    trainer, seconds, save = Trainer(run, registry.plugins), [], checkpoint.save

    def timed(folder, *arguments, **more):
        start = time.perf_counter()
        save(folder, *arguments, **more)
        seconds.append((run.step, time.perf_counter() - start))

    monkeypatch.setattr(checkpoint, "save", timed)
    progress = trainer.state.progress
    improved = progress.improved
    monkeypatch.setattr(progress, "improved", lambda *evaluation: improved(*evaluation) or True)
    trainer.train()
    assert run.settings.evaluate.every == 100
    of_interval = sum(took for step, took in seconds if step == 100)
    share = of_interval / progress.seconds
    print(f"{of_interval:.3f} s of {progress.seconds:.1f} s: {share:.2%}")
    assert len(seconds) == 2 and share < 0.03
