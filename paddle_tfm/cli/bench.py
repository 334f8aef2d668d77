"""`paddle-tfm bench`: speed compared with `paddle.nn.Transformer`, PyTorch, JoeyNMT and CTranslate2."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from paddle_tfm.bench.sides import DECODING, KINDS, TRAINING
from paddle_tfm.bench.sizes import SIZES
from paddle_tfm.cli.common import console, notes, overrides_argument, plugin_option
from paddle_tfm.errors import UserError
from paddle_tfm.files import write_named


@click.command(name="bench")
@overrides_argument
@click.option(
    "--recipe",
    default=None,
    help="The recipe of data, sizes and dropout. Default: Multi30k if PADDLE_TFM_DATA has it, else dates.",
)
@click.option(
    "--size",
    type=click.Choice([*SIZES, "all"]),
    default=None,
    help="Model size; all: one after another, and with --decode also the searches. Default: small, or the recipe's.",
)
@click.option("--placement", type=click.Choice(["pre", "post"]), default="pre", show_default=True)
@click.option(
    "--side",
    "sides",
    multiple=True,
    type=click.Choice([side for side in KINDS if side != "ours"]),
    help="A library to compare with (repeatable). Default: all that are installed.",
)
@click.option(
    "--growth",
    default=None,
    type=click.Choice(["length", "batch", "vocabulary"]),
    help="Measure time and memory for growing sentences (64 to 2,048 tokens), batches or vocabularies.",
)
@click.option(
    "--decode",
    "run",
    default=None,
    metavar="RUN",
    type=click.Path(path_type=Path),
    help="Time searches with this trained run (of `multi30k`, say) instead of a training step.",
)
@click.option(
    "--sentences",
    default=None,
    type=click.IntRange(min=1),
    help="With --decode: how many of the test split. Default: all.",
)
@click.option("--rounds", default=None, type=int, help="Turns of each side. Default: 7, with --decode 3.")
@click.option("--json", "file", type=click.Path(path_type=Path), default=None, help="Write all figures to a file.")
@click.option(
    "--markdown",
    "page",
    type=click.Path(path_type=Path),
    default=None,
    help="With --size all: write the tables to a file, or into a page that has the place for them.",
)
@plugin_option
@click.pass_context
def command(
    context, overrides, recipe, size, placement, sides, growth, run, sentences, rounds, file, page, plugins
) -> None:
    """Time a training step of paddle_tfm and of the same model in paddle.nn.Transformer, PyTorch's nn.Transformer
    (eager and compiled) and JoeyNMT, with the same batches, masks, dropout, optimizer and copied weights. The libraries
    take turns. On a busy machine, read the ratio of the fastest rounds. With --decode: time searches with the weights
    of a run in paddle_tfm, CTranslate2, and if they have such a model (layer norm, sinusoidal positions, ReLU) PyTorch
    and JoeyNMT. Each side's threads, precision, variables and settings are printed below the table.

    PyTorch and CTranslate2 come with the extra [bench]; JoeyNMT with: pip install tensorboard importlib_metadata, and
    pip install --no-deps joeynmt==2.3.0 subword-nmt

    \b
    Examples:
      paddle-tfm bench
      paddle-tfm bench --size tiny --json tiny.json
      paddle-tfm bench --side torch --side joeynmt
      paddle-tfm bench --growth length --side torch
      paddle-tfm bench --decode runs/multi30k/default/seed-1 --side ctranslate2
      paddle-tfm bench --size all --decode runs/multi30k/default/seed-1 --markdown docs/performance.md
      paddle-tfm bench --recipe quickstart model.dropout=0.1
    """
    _refuse_options(context, run)
    arguments: dict[str, Any] = {"plugins": plugins, "report": lambda text: notes().print(f"[dim]{text}[/]")}
    same = {"recipe": recipe, "overrides": overrides, "placement": placement}
    result: dict | list[dict]
    if size == "all":
        result = _everything(run, sides, rounds, sentences, page, {**same, **arguments})
    elif run is not None:
        result = _decoding(run, sides, rounds, sentences, arguments)
    elif growth is not None:
        result = _growth(growth, sides, rounds, {**same, "size": size, **arguments})
    else:
        result = _step(sides, rounds, {**same, "size": size, **arguments})
    if file is not None:
        write_named(file, json.dumps(result, indent=1))
        console().print(f"figures  {file}")


def _everything(
    run: Path | None,
    sides: Sequence[str],
    rounds: int | None,
    sentences: int | None,
    page: Path | None,
    arguments: dict,
) -> dict:
    """The searches of a run, whose faults thus show before long measurements, and every size."""
    from paddle_tfm.bench.page import around, markdown, write
    from paddle_tfm.bench.step import measure_sizes
    from paddle_tfm.cli.bench_tables import step_table

    if page is not None:
        around(page)  # a page without the place for them is refused before anything is measured
    search, steps = None, []
    if run is not None:
        only = {name: arguments[name] for name in ("plugins", "report")}
        search = _decoding(run, sides, rounds, sentences, only, DECODING)
    for measurement in measure_sizes(**arguments, **_chosen(sides, rounds, TRAINING)):
        step_table(measurement)
        steps.append(measurement)
    if page is not None:
        write(page, markdown(steps, search))
        console().print(f"tables  {page}")
    return {"steps": steps, "decoding": search}


def _step(sides: Sequence[str], rounds: int | None, arguments: dict) -> dict:
    from paddle_tfm.bench.step import measure
    from paddle_tfm.cli.bench_tables import step_table

    result = measure(**arguments, **_chosen(sides, rounds))
    step_table(result)
    return result


def _growth(what: str, sides: Sequence[str], rounds: int | None, arguments: dict) -> list[dict]:
    from paddle_tfm.bench.step import measure_growth
    from paddle_tfm.cli.bench_tables import growth_table

    results = measure_growth(what, **arguments, **_chosen(sides, rounds))
    growth_table(what, results)
    return results


def _decoding(
    run: Path,
    sides: Sequence[str],
    rounds: int | None,
    sentences: int | None,
    arguments: dict,
    possible: Sequence[str] = (),
) -> dict:
    from paddle_tfm.bench.decode import measure_decoding
    from paddle_tfm.cli.bench_tables import decoding_table

    result = measure_decoding(run, sentences=sentences, **arguments, **_chosen(sides, rounds, possible))
    for job in result["jobs"]:
        decoding_table(result, job)
    return result


def _chosen(sides: Sequence[str], rounds: int | None, possible: Sequence[str] = ()) -> dict[str, Any]:
    """The arguments `sides` (those of `possible`, if there are some) and `rounds`, where they were chosen."""
    possible_sides = [side for side in sides if not possible or side in possible]
    chosen: dict[str, Any] = {"sides": (possible_sides or ["ours"]) if sides else None}
    return chosen if rounds is None else {**chosen, "rounds": rounds}


def _refuse_options(context: click.Context, run: Path | None) -> None:
    """Refuse options of decoding for a training step, the reverse, and what one table of all sizes cannot hold.

    Raises:
        UserError: there is such an option.
    """
    chosen = [
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name]
    ]
    everything = context.params["size"] == "all"
    rules = {
        "growth": "not with --size all" if everything else "",
        "page": "" if everything else "only with --size all",
        "sentences": "only with --decode RUN" if run is None else "",
    }
    if run is not None and not everything:
        steps = ("overrides", "recipe", "size", "placement", "growth")
        rules |= dict.fromkeys(steps, "not with --decode, which takes everything from the run")
    for name, rule in rules.items():
        if rule and name in chosen:
            option = {"overrides": "overrides", "page": "--markdown"}.get(name, f"--{name}")
            raise UserError(f"{option}: {rule}")
