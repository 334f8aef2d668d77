"""`paddle-tfm evaluate RUN`: score a trained run, or anybody's translations of its test set."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from paddle_tfm.cli.common import console, create_registry, device_option, notes, plugin_option, use_device
from paddle_tfm.cli.evaluate import scores
from paddle_tfm.cli.evaluate.scores import QUARTERS
from paddle_tfm.cli.tables import emit, table_options
from paddle_tfm.language import english

search_option = click.option("--search", default=None, help="greedy, or {name: beam, size: 10}. Default: the recipe's.")
checkpoint_option = click.option(
    "--checkpoint", type=click.Choice(["best", "last"]), default="best", show_default=True, help="Which one to load."
)


@click.command(name="evaluate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--split", type=click.Choice(["train", "valid", "test"]), help="Default: test.")
@click.option(
    "--test",
    metavar="NAME|{…}",
    help="A further test: a name from the recipe (evaluate.tests), or settings as there: {task: {test_min_length:"
    " 13}}, {batch: 1, padding: 20}, {max_length: 40}. With batch or padding it also shows which outputs "
    "changed.",
)
@search_option
@checkpoint_option
@click.option(
    "--hypotheses",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Score these translations of the split instead, a line each, of any system.",
)
@click.option(
    "--buckets",
    is_flag=False,
    flag_value=QUARTERS,
    metavar="[5,10,15]",
    help="Scores by length of the source, or of the target where there is none: up to 5 words, 6 to 10, … Without "
    "numbers: four buckets of like size.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file for predictions. Default: beside the run's own.",
)
@table_options
@plugin_option
@device_option
def command(plugins, device, **options: Any) -> None:
    """Score the run in folder RUN on a split or on another test, and write its predictions beside it, or to --out.
    Scores are printed first, in case that folder cannot be written. --csv prints a line of all examples, then one
    a bucket.

    \b
    Examples:
      paddle-tfm evaluate runs/reverse/default/seed-1
      paddle-tfm evaluate runs/quickstart/pointer/seed-1 --split valid --search "{name: beam, size: 10}"
      paddle-tfm evaluate runs/reverse --buckets 4,8 --json > scores.json
      paddle-tfm evaluate runs/reverse --hypotheses other-system.txt
      paddle-tfm evaluate runs/reverse --test "{task: {test_min_length: 13, test_max_length: 14}}"
      paddle-tfm evaluate runs/reverse --test "{batch: 1, padding: 20}"
    """
    wanted = scores.Request(**options)
    wanted.require_sound()
    registry = create_registry(plugins)
    use_device(device)
    from paddle_tfm.cli.evaluate.evaluation import Evaluation

    evaluation = Evaluation(wanted, registry)
    metrics = evaluation.metrics
    with english() if wanted.form else nullcontext():
        results = evaluation.results()
    if wanted.form is None:
        scores.show(results, metrics)
    if file := evaluation.file():
        printer = console() if wanted.form is None else notes()
        results["predictions"] = scores.write_beside(file, evaluation.predictions, printer)
    if wanted.form is not None:
        emit(scores.table(results, metrics), wanted.form, results)
