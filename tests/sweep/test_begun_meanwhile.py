"""A cell that another command begins while a sweep trains those before it."""

import pytest
from recipe_text import TINY_MODEL

from paddle_tfm import create_registry, hookimpl, load_recipe
from paddle_tfm.errors import UserError
from paddle_tfm.sweep.sweep import Sweep
from paddle_tfm.train.trainer import Interrupted

CELL = "post/seed-1"
RECIPE = [
    *TINY_MODEL, "model.max_length=10", "train.max_tokens=128", "evaluate.examples=5", "train.steps=8",
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}",
    "variants={pre: {}, post: {model.placement: post}}", "evaluate.every=2",
]  # fmt: skip


class Steps:
    """The steps that are trained."""

    def __init__(self):
        self.steps = []

    @hookimpl
    def on_step_end(self, step):
        self.steps.append(step)


def sweep(folder, steps, *overrides, **options):
    registry = create_registry()
    registry.plugins.manager.register(steps)
    return Sweep(load_recipe("base", [*RECIPE, *overrides]), registry, folder, **options)


def begin_elsewhere(folder, *overrides):
    """Train three steps of the cell, as `--cell` does."""
    steps = Steps()
    with pytest.raises(Interrupted):
        sweep(folder, steps, *overrides, only=CELL, resume=True, stop=lambda: len(steps.steps) >= 3).run()


def test_it_is_resumed(tmp_path):
    ours = sweep(tmp_path, steps := Steps())
    cell = next(cell for cell in ours.prepare() if cell.name == CELL)
    begin_elsewhere(tmp_path)
    ours.run([cell])
    assert steps.steps == [4, 5, 6, 7, 8]


def test_one_of_other_settings_is_refused_and_kept(tmp_path):
    ours = sweep(tmp_path, steps := Steps())
    cell = next(cell for cell in ours.prepare() if cell.name == CELL)
    begin_elsewhere(tmp_path, "model.d_ff=24")
    with pytest.raises(UserError, match=r"cannot be resumed: .*model\.d_ff was 24"):
        ours.run([cell])
    assert steps.steps == [] and (cell.folder / "checkpoints/last/state.json").is_file()
