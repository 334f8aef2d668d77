"""`paddle-tfm evaluate RUN`: score a trained run."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import console, create_registry, device_option, plugin_option, use_device, warn

search_option = click.option("--search", default=None, help="greedy, or {name: beam, size: 10}. Default: the recipe's.")
checkpoint_option = click.option(
    "--checkpoint", type=click.Choice(["best", "last"]), default="best", show_default=True, help="Which one to load."
)


@click.command(name="evaluate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--split", type=click.Choice(["train", "valid", "test"]), default="test", show_default=True)
@search_option
@checkpoint_option
@plugin_option
@device_option
def command(run: Path, split: str, search, checkpoint: str, plugins, device) -> None:
    """Score the run in folder RUN on a split, and write its predictions beside it.

    \b
    Examples:
      paddle-tfm evaluate runs/reverse/default/seed-1
      paddle-tfm evaluate runs/quickstart/pre-layer/seed-1 --split valid --search "{name: beam, size: 10}"
    """
    from rich.markup import escape
    from rich.table import Table

    from paddle_tfm import yaml_lines

    registry = create_registry(plugins)
    use_device(device)
    from paddle_tfm.errors import UserError
    from paddle_tfm.train.evaluate import likelihood, predict, score
    from paddle_tfm.train.logs import write_predictions
    from paddle_tfm.train.run import load_corpus, load_run

    loaded = load_run(run, registry, checkpoint, warn)
    chosen = registry.build("search", yaml_lines.value(search), "--search") if search else loaded.search()
    examples = loaded.codec.encode_all(load_corpus(loaded.settings, registry).splits[split])
    if not examples:
        raise UserError(f"{loaded.folder}: its task has no {split} split")
    predictions = predict(loaded.model, loaded.codec, examples, chosen)
    metrics = loaded.metrics()
    values = score(metrics, predictions, likelihood(loaded.model, examples))
    console().print(f"{escape(str(loaded.folder))} on {len(examples):,} {split} examples")
    table = Table(box=None)
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in values.items():
        percent = name in metrics and metrics[name].percent
        table.add_row(name.replace("_", " "), f"{100 * value:.2f}%" if percent else f"{value:.4f}")
    console().print(table, soft_wrap=False)
    path = loaded.folder / f"predictions-{split}.tsv"
    write_predictions(path, predictions)
    console().print(f"predictions  {escape(str(path))}")
