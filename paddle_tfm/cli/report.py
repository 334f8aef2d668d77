"""`paddle-tfm report RUN…`: a model card of one run, or the report of a comparison of several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from paddle_tfm.cli.common import console, create_registry, device_option, note, plugin_option, use_device, warn
from paddle_tfm.language import _


@click.command(name="report")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--quick", is_flag=True, help="Load no model: without attention and generated text.")
@click.option("--all", "slow", is_flag=True, help="Of several runs: also sections that load a model.")
@click.option(
    "--sentence",
    "sentences",
    multiple=True,
    metavar="TEXT",
    help="Show attention on this text, of every layer and head (repeatable). Of several runs: as with --all.",
)
@click.option("--out", type=click.Path(path_type=Path), help="The folder for the page. Default: that of the run.")
@plugin_option
@device_option
def command(folders, quick, slow, sentences, out, plugins, device) -> None:
    """One HTML page: of a single run its model card, of several runs their comparison.

    A model card says what the model is, its data, its scores by length, its best and worst outputs, where it looks,
    and how to use it. It can be made of an unfinished run too.

    \b
    Examples:
      paddle-tfm report runs/reverse/default/seed-1
      paddle-tfm report runs/quickstart
      paddle-tfm report runs/quickstart --all
      paddle-tfm report runs/multi30k --sentence "a dog on a leash pulls its owner"
    """
    from paddle_tfm.cli.check.finished import runs_in
    from paddle_tfm.errors import UserError
    from paddle_tfm.runtime import load_paddle

    if quick and sentences:
        raise UserError(_("--sentence needs the model, which --quick does not load; leave one of them out"))
    if any(not sentence.strip() for sentence in sentences):
        raise UserError(_("--sentence is empty; write the text whose attention you want to see"))
    if out is None:
        for folder in folders:
            if folder.is_dir() and not os.access(folder, os.W_OK):
                text = _("{folder} cannot be written; --out DIR writes the page elsewhere")
                raise UserError(text.format(folder=folder))
    load_paddle()  # quietly, before what reads runs imports it
    runs = [run for folder in folders for run in runs_in(folder)]
    runs = list({run.resolve(): run for run in runs}.values())
    if len(runs) > 1:
        slow = slow or bool(sentences)
        if slow:
            use_device(device)
        _compare(folders, out, create_registry(plugins), slow, sentences)
        return
    registry = create_registry(plugins)
    if not quick:
        use_device(device)
    path = _card(runs[0], registry, quick, out or runs[0], sentences)
    console().print(f"{_('card')}  {path}", markup=False, soft_wrap=True)


def _compare(folders, out: Path | None, registry, slow: bool, sentences: Sequence[str]) -> None:
    from paddle_tfm.cli.compare import comparison_of
    from paddle_tfm.comparison.report.report import Report

    paths = Report(comparison_of(folders, out), registry, warn, slow, files=True, chosen=sentences).write()
    console().print(f"{_('report')}  {paths['page']}", markup=False, soft_wrap=True)


def _card(folder: Path, registry, quick: bool, out: Path, sentences: Sequence[str]) -> Path:
    from paddle_tfm.card.facts import RunFacts
    from paddle_tfm.card.page import FILE, page
    from paddle_tfm.errors import UserError
    from paddle_tfm.files import write_whole
    from paddle_tfm.runs.folders import plan_of
    from paddle_tfm.train.evaluate import text_metrics
    from paddle_tfm.train.run import load_run
    from paddle_tfm.units import visible

    facts, loaded = RunFacts(folder), None
    plan = plan_of(folder, registry)
    metrics = text_metrics({name: metric.build() for name, metric in plan.metrics().items()})
    if not quick:
        note(_("{folder}: loading its model …").format(folder=folder))
        try:
            loaded = load_run(folder, registry, "best" if facts.results else "last", warn)
        except UserError as error:
            warn(_("{why}; the card is written without what needs the model").format(why=error))
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / FILE, visible(page(facts, metrics, loaded, sentences)), shared=True)
    return out / FILE
