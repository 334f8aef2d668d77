"""`python -m benchmarks`: a table of our training step and searches beside other libraries'."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from benchmarks.measure import SIZES, Row, measure_search, measure_step
from benchmarks.sides import SEARCH, SIDES, TRAINING
from paddle_tfm import runtime
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


HEADINGS = (
    *("what", "side", "ms", "a second", "ours is", "fastest rounds", "the same", "most memory, MiB"),
    "how it computes",
)


def table(rows: Iterable[tuple[str, Sequence[Row]]]) -> str:
    """The rows of each measurement, beside what was measured."""
    cells = [[what, *_cells(row)] for what, several in rows for row in several]
    return "\n".join(f"| {' | '.join(line)} |" for line in [HEADINGS, ["---"] * len(HEADINGS), *cells])


def _cells(row: Row) -> list[str]:
    ratio = ["", ""]
    if row.side != "ours":
        median, low, high = row.ratio
        ratio = [f"{median:.2f} × ({low:.2f} – {high:.2f})", f"{row.undisturbed:.2f} ×"]
    speed = [f"{row.milliseconds:,.1f}", f"{row.per_second:,.0f}"]
    return [SIDES[row.side].title, *speed, *ratio, row.same, f"{row.peak_mib:,}", how(row.computes)]


def how(computes: Mapping) -> str:
    """How a side computes, as a cell: its processes or threads, its precision, the variables and settings that
    differ from its library as it comes."""
    threads, processes = computes["threads"], computes["processes"]
    parts = [f"{processes} processes" if processes > 1 else f"{threads} thread{'s' if threads > 1 else ''}"]
    parts.append(computes["precision"])
    parts += [f"{name}={value}" for name, value in computes["variables"].items()]
    parts += [computes["settings"]] if computes["settings"] else []
    return ", ".join(parts)


def surroundings() -> str:
    """The machine, how busy it was in the minute before, and the versions: other work slows a side of many threads
    more than one of a single thread."""
    lines = Path("/proc/cpuinfo").read_text(errors="ignore").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    processor = next(names, platform.processor() or platform.machine())
    installed = [name for name in ("numpy", "torch", "joeynmt", "ctranslate2") if importlib.util.find_spec(name)]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("paddle-tfm", *installed)]
    versions += [" ".join(runtime.installed_paddle() or ["no Paddle"]), f"Python {platform.python_version()}"]
    cores, load = runtime.physical_cores(), os.getloadavg()[0]
    return f"{processor}, {cores} cores, load {load:.1f} before; {', '.join(versions)}."


if __name__ == "__main__":
    try:
        main(prog_name="python -m benchmarks")
    except UserError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
