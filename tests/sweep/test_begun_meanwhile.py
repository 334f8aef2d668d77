"""A cell that another command begins while a sweep trains those before it."""

import pytest
from stored_sweeps import RECIPE, VARIANTS

from paddle_tfm import create_registry, hookimpl, load_recipe
from paddle_tfm.errors import UserError
from paddle_tfm.sweep.store import Store
from paddle_tfm.sweep.sweep import Sweep
from paddle_tfm.train.trainer import Interrupted

CELL = "post/seed-1"


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
    return Sweep(load_recipe("base", [*RECIPE[2:], VARIANTS, *overrides]), registry, folder, **options)


def begin_elsewhere(folder, *overrides, **options):
    """Train three steps of the cell, as `--cell` does."""
    steps = Steps()
    with pytest.raises(Interrupted):
        sweep(folder, steps, *overrides, only=CELL, resume=True, stop=lambda: len(steps.steps) >= 3, **options).run()


@pytest.mark.parametrize("place", ["the same folder", "a store"])
def test_it_is_resumed(place, tmp_path):
    if place == "a store":
        pytest.importorskip("fsspec")
    store = Store(f"memory://{tmp_path}") if place == "a store" else None
    ours = sweep(tmp_path / "one", steps := Steps(), store=store)
    cell = next(cell for cell in ours.prepare() if cell.name == CELL)
    begin_elsewhere(tmp_path / ("one" if store is None else "other"), store=store)
    ours.run([cell])
    assert steps.steps == [4, 5, 6, 7, 8]


def test_one_of_other_settings_is_refused_and_kept(tmp_path):
    ours = sweep(tmp_path, steps := Steps())
    cell = next(cell for cell in ours.prepare() if cell.name == CELL)
    begin_elsewhere(tmp_path, "model.d_ff=24")
    with pytest.raises(UserError, match=r"cannot be resumed: .*model\.d_ff was 24"):
        ours.run([cell])
    assert steps.steps == [] and (cell.folder / "checkpoints/last/state.json").is_file()
