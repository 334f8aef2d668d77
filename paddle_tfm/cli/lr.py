"""`paddle-tfm lr RECIPE`: the learning-rate range test."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from paddle_tfm.cli.common import (
    console,
    create_registry,
    device_option,
    notes,
    overrides_argument,
    plugin_option,
    recipe_argument,
    use_device,
)
from paddle_tfm.cli.lines import check_output
from paddle_tfm.cli.tables import emit, table_options
from paddle_tfm.errors import UserError
from paddle_tfm.tabular import Column, Table

ROWS = 16
rate = click.FloatRange(min=0, min_open=True)


@click.command(name="lr")
@recipe_argument
@overrides_argument
@click.option("--from", "lowest", type=rate, default=1e-6, show_default=True, help="The first learning rate.")
@click.option("--to", "highest", type=rate, default=1.0, show_default=True, help="The last learning rate.")
@click.option("--steps", type=click.IntRange(min=10), default=200, show_default=True, help="Steps between the two.")
@click.option("--figure", type=click.Path(path_type=Path), help="Plot loss against rate into this file (.png, .svg).")
@table_options
@plugin_option
@device_option
def command(recipe: str, overrides, lowest, highest, steps, figure, plugins, device, form) -> None:
    """Find a learning rate for RECIPE's first variant: train a new model for some steps while the rate rises, and show
    at which rates the loss falls and at which it diverges (arXiv:1506.01186).

    \b
    Examples:
      paddle-tfm lr multi30k
      paddle-tfm lr mine.yaml model.d_model=512 --steps 100 --figure lr.png
    """
    from paddle_tfm.recipe import loading as recipes

    if not lowest < highest:
        raise UserError(f"--from {lowest:g} must be below --to {highest:g}")
    resolved = recipes.load(recipe, overrides)
    resolved.require_one_model()
    registry = create_registry(plugins)
    use_device(device)
    from paddle_tfm.data.corpus import load_corpus
    from paddle_tfm.sweep.check import check
    from paddle_tfm.train.range_test import range_test, suggestion
    from paddle_tfm.train.run import create
    from paddle_tfm.train.trainer import Trainer

    if figure is not None:
        check_output(str(figure), None, "--figure")
    plan = check(resolved, registry)[0]
    with tempfile.TemporaryDirectory() as folder:
        run = create(plan, Path(folder), load_corpus(plan))
        points = []
        with click.progressbar(length=steps, label="Range test", file=notes().file) as bar:
            for point in range_test(Trainer(run, registry.plugins), lowest, highest, steps):
                points.append(point)
                bar.update(1)
    emit(_table(points, form), form)
    if figure is not None:
        _draw(points, figure)
    (console() if form is None else notes()).print(_advice(points, suggestion(points)), soft_wrap=True)


def _advice(points, best: float | None) -> str:
    if best is not None:
        return f"Try a peak of [bold]{best:.1e}[/]: a tenth of the rate at which the loss was lowest."
    if len(points) > 1 and points[-1].loss < points[0].loss:
        return f"The loss was still falling at {points[-1].rate:.1e}: raise --to, or use more --steps."
    return "The loss never fell: try lower rates with --from, or more --steps."


def _table(points, form: str | None) -> Table:
    """Loss by rate, with bars; for programs every point, for people some."""
    top = max((point.loss for point in points), default=1.0)
    columns: list[Column] = [
        Column("rate", lambda point: f"{point.rate:.1e}", lambda point: {"rate": point.rate}, right=True),
        Column("loss", lambda point: f"{point.loss:.3f}", lambda point: {"loss": point.loss}, right=True),
        Column("", lambda point: "▇" * max(1, round(40 * point.loss / top)), lambda point: {}, importance=1),
    ]
    return Table(columns, points if form else points[:: max(1, len(points) // ROWS)])


def _draw(points, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", xlabel="learning rate", ylabel="loss (nats per token, smoothed)")
    axes.plot([point.rate for point in points], [point.loss for point in points])
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: the figure cannot be written: {error}") from error
    notes().print(f"figure  {path}", markup=False, soft_wrap=True)
