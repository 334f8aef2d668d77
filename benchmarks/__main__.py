"""`python -m benchmarks`: a table of our training step and searches beside other libraries'."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.measure import Row, measure_search, measure_step
from benchmarks.recipe import SIZES
from benchmarks.sides import SEARCH, SIDES, TRAINING
from benchmarks.table import surroundings, table
from paddle_tfm.errors import UserError

SEARCHES = {"beam": "beam 5, in batches", "greedy": "greedy, one sentence at a time"}


@click.command()
@click.argument("overrides", nargs=-1, metavar="[a.b=value]...")
@click.option("--size", type=click.Choice([*SIZES, "all"]), default="small", show_default=True)
@click.option(
    "--side",
    "sides",
    multiple=True,
    type=click.Choice([side for side in SIDES if side != "ours"]),
    help="A library to compare with (repeatable). Default: all that are installed.",
)
@click.option("--length", type=click.IntRange(min=2), help="Cut every source and target to so many tokens.")
@click.option(
    "--decode",
    "run",
    metavar="RUN",
    type=click.Path(path_type=Path),
    help="Time searches with this trained run (of `multi30k`, say); training steps too with --size all.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="Turns of each side. Default: 7, of searches 3.")
@click.pass_context
def main(context, overrides, size, sides, length, run, rounds) -> None:
    """Time a training step of paddle_tfm and of the same model in paddle.nn.Transformer, PyTorch's nn.Transformer
    (eager, tuned, in bfloat16, compiled) and JoeyNMT, with the same batches, masks, dropout, optimizer and copied
    weights: Multi30k if PADDLE_TFM_DATA has it, else dates. With --decode: searches with the weights of a run, also in
    CTranslate2. The sides take turns. The columns: milliseconds of a step or a sentence, target tokens or sentences a
    second, how many times as fast ours is (on a busy machine, read the fastest rounds).

    PyTorch and CTranslate2 come with the extra [bench]; JoeyNMT with: pip install tensorboard importlib_metadata, and
    pip install --no-deps joeynmt==2.3.0 subword-nmt

    \b
    Examples:
      python -m benchmarks --side torch --side joeynmt
      python -m benchmarks --length 512 model.max_length=512 train.max_tokens=2048 --side torch
      python -m benchmarks --decode runs/multi30k/default/seed-1 --side ctranslate2
      python -m benchmarks --size all --decode runs/multi30k/default/seed-1 > table.md
    """
    if run is not None and size != "all" and (length or overrides):
        raise click.UsageError("--decode takes everything from the run: no --length, and no a.b=value")

    def report(text: str) -> None:
        click.echo(text, err=True)

    chosen = {} if rounds is None else {"rounds": rounds}
    before = surroundings()
    rows: list[tuple[str, Sequence[Row]]] = []
    if run is not None:  # first: its faults show before long measurements
        searches = [side for side in sides if any(side in able for able in SEARCH.values())] or sides
        for job, several in measure_search(run, searches, report=report, **chosen).items():
            rows.append((f"{SEARCHES[job]}, {several[0].units:,} sentences", several))
    if run is None or size == "all":
        steps = [side for side in sides if side in TRAINING["step"]] or sides
        for name in SIZES if size == "all" else [size]:
            report(f"size {name}")
            rows.append((f"step, {name}", measure_step(name, overrides, steps, length=length, report=report, **chosen)))
    click.echo(f"{before}\n\n{table(rows)}")


if __name__ == "__main__":
    try:
        main(prog_name="python -m benchmarks")
    except UserError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
