"""`paddle-tfm import PATH`: a model that somebody else trained, as a run."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import console, create_registry, note, plugin_option, use_device, warn
from paddle_tfm.language import _


@click.command(name="import")
@click.argument("path", type=click.Path(path_type=Path), metavar="PATH")
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), metavar="DIR", required=True, help="The run's folder."
)
@click.option(
    "--compare",
    "compared",
    nargs=2,
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="SOURCE OUTPUT",
    help="Outputs that its own toolkit wrote, a line each, of texts or (.pieces) of pieces; the name may say by which "
    "search: NAME.greedy, NAME.beam6-normalize0.6. Default: those beside the model.",
)
@click.option("--task", metavar="NAME|{…}", help="The texts that it is scored on. Default: those compared.")
@click.option("--as-trained", is_flag=True, help="Of Marian's pre-norm models: self-attention as in training.")
@plugin_option
def command(path, folder, compared, task, as_trained, plugins) -> None:
    """Make a run of the model at PATH, which another toolkit trained: Marian's .npz, or its folder; a folder of
    CTranslate2; an .argosmodel.

    What is recorded of its own outputs is compared with ours, and the outcome kept in the run. A model that asks for
    something that nothing here computes is refused by its name. docs/import.md says what is read.

    \b
    Examples:
      paddle-tfm import opus-mt-en-de --out runs/opus
      paddle-tfm import model.npz --out runs/mine --compare test.en test.greedy
      paddle-tfm import opus-mt-en-de --out runs/opus --task "{name: parallel, dataset: multi30k}"
    """
    registry = create_registry(plugins)
    use_device("cpu")
    from paddle_tfm.imports.recorded import Recorded, recorded_beside
    from paddle_tfm.imports.run_folder import import_model, read_model
    from paddle_tfm.recipe import yaml_lines

    foreign = read_model(path, as_trained)
    for remark in foreign.remarks:
        warn(remark)
    recorded = [Recorded.of(*files) for files in compared] or list(
        recorded_beside(path if path.is_dir() else path.parent)
    )
    of_task = None if task is None else yaml_lines.value(task)
    outcomes = import_model(foreign, folder, registry, recorded, of_task, note)
    console().print(f"imported  {folder}", markup=False)
    if task is None and not recorded:
        text = _("it has no scores: put texts into {folder}/texts, source.txt and target.txt, or name some by --task")
        note(text.format(folder=folder))
    for outcome in outcomes:
        console().print(f"proof     {outcome.sentence()}", markup=False)
