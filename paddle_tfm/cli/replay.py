"""`paddle-tfm replay RUN`: the step in which a run's loss or gradient became no number, once more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddle_tfm.cli.common import console, create_registry, device_option, notes, plugin_option, use_device, warn
from paddle_tfm.cli.tables import emit, table_options
from paddle_tfm.tabular import Column, Table

if TYPE_CHECKING:
    import numpy as np

    from paddle_tfm.data.batches import Batch
    from paddle_tfm.train.origin import Output
    from paddle_tfm.train.run import Run

LAYERS, SENTENCES, PIECES = 12, 3, 24  # that are shown: before the first wrong one; of the batch; of a sentence


@click.command(name="replay")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--all", "everything", is_flag=True, help="Every layer, not only those before the first wrong one.")
@table_options
@plugin_option
@device_option
def command(run: Path, everything: bool, form: str | None, plugins, device) -> None:
    """Do the step again in which the loss or the gradient of the run in folder RUN became NaN or infinite: forward and
    backward, no update. Shows the first layer whose output is not finite, the layers before it with the largest value
    of each, and the sentences of the batch.

    The first such step of a run is kept in RUN/checkpoints/diverged: the model before it, the optimizer's state and
    the batches. What a training does with such steps says the recipe: `train.divergence` is stop, skip (the step is
    left out and counted, up to 10 in a row) or back_off (and the learning rate is halved).

    \b
    Examples:
      paddle-tfm replay runs/mine/default/seed-1
      paddle-tfm replay runs/mine/default/seed-1 --plugin my_norm.py --all
      paddle-tfm replay runs/mine --json
    """
    registry = create_registry(plugins)
    use_device(device)
    from paddle_tfm.errors import UserError
    from paddle_tfm.train import divergence, manifest
    from paddle_tfm.train.forms import Diverged, read_form
    from paddle_tfm.train.run import find_run, load_run

    folder = find_run(run)
    point = manifest.find(folder / "checkpoints" / divergence.FOLDER)
    if point is None:
        raise UserError(f"{folder}: the loss and the gradient of each step were numbers; nothing is to be replayed")
    loaded = load_run(folder, registry, divergence.FOLDER, warn)
    state, codec = read_form(point / manifest.STATE, Diverged), loaded.codec
    sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
    longest, number = loaded.settings.model.max_length, state["failed_step"]
    batches = divergence.load_batches(point, *sizes, longest)
    outputs = _again(loaded, number, batches)
    out = console() if form is None else notes()
    out.print(f"{loaded.folder}: {state['sentence']}.", markup=False, highlight=False, soft_wrap=True)
    out.print(f"It began with {state['origin']}.", markup=False, highlight=False, soft_wrap=True)
    emit(_table(outputs, everything), form)
    for sentence in _texts(loaded, batches):
        out.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _again(run: Run, number: int, batches: Sequence[Batch[np.ndarray]]) -> list[Output]:
    """What every layer computes in that step."""
    from paddle_tfm.model.size import trained_parameters
    from paddle_tfm.train.origin import outputs
    from paddle_tfm.train.step import Step

    components, train = run.plan.components, run.settings.train
    parameters = trained_parameters(run.model)
    optimizer = components["train.optimizer"].build().create(parameters)
    step = Step(run.model, parameters, optimizer, lambda step: 0.0, train, run.seed)
    run.model.train()
    return outputs(step, number, batches)


def _table(outputs: Sequence[Output], everything: bool) -> Table:
    first = next((number for number, output in enumerate(outputs) if output.wrong), len(outputs) - 1)
    rows = list(outputs) if everything else list(outputs)[max(0, first - LAYERS) : first + 1]

    def data(name: str):
        def value(output: Output) -> dict[str, Any]:
            return {name: getattr(output, name)}

        return value

    columns: list[Column] = [
        Column("layer", lambda output: output.path, data("path")),
        Column("class", lambda output: output.kind, data("kind"), importance=1),
        Column("largest", lambda output: f"{output.largest:.3g}", data("largest"), right=True),
        Column("not finite", lambda output: f"{output.wrong:,} of {output.size:,}", data("wrong"), right=True),
    ]
    return Table(columns, rows)


def _texts(run: Run, batches: Sequence[Batch[np.ndarray]]):
    """What the batches hold: how much, which training examples, and the first sentences of them."""
    rows = sum(len(batch.index) for batch in batches)
    tokens = sum(batch.tokens for batch in batches)
    examples = ", ".join(str(int(number)) for batch in batches for number in batch.index[:SENTENCES])
    yield f"The step has {rows:,} sentences and {tokens:,} target tokens; the first are training examples {examples}:"
    pieces = run.codec.target_vocabulary.pieces
    for row, valid in zip(batches[0].target_out[:SENTENCES], batches[0].target_valid[:SENTENCES]):
        words = [pieces[int(number)] if number < len(pieces) else "?" for number in row[valid]]
        yield "  " + " ".join([*words[:PIECES], *(["…"] if len(words) > PIECES else [])])
