"""`paddle-tfm bench`: speed compared with `paddle.nn.Transformer`, PyTorch, JoeyNMT and CTranslate2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from paddle_tfm.cli.common import console, notes, overrides_argument, plugin_option
from paddle_tfm.errors import UserError

SIDES = {
    "ours": "paddle_tfm",
    "paddle": "paddle.nn.Transformer, default settings",
    "paddle-tuned": "paddle.nn.Transformer, our runtime settings",
    "torch": "PyTorch nn.Transformer",
    "torch-compile": "PyTorch nn.Transformer, torch.compile",
    "joeynmt": "JoeyNMT",
    "ours-uncached": "paddle_tfm without key/value cache",
    "ctranslate2": "CTranslate2, float32",
}
JOBS = {"beam": "beam {beam}, in batches", "single": "greedy, one sentence at a time"}


@click.command(name="bench")
@overrides_argument
@click.option(
    "--recipe",
    default=None,
    help="The recipe of data, sizes and dropout. Default: Multi30k if PADDLE_TFM_DATA has it, else dates.",
)
@click.option(
    "--size",
    type=click.Choice(["tiny", "small", "base"]),
    default=None,
    help="Model size. Default: small, or the recipe's.",
)
@click.option("--placement", type=click.Choice(["pre", "post"]), default="pre", show_default=True)
@click.option(
    "--side",
    "sides",
    multiple=True,
    type=click.Choice([side for side in SIDES if side != "ours"]),
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
@plugin_option
@click.pass_context
def command(context, overrides, recipe, size, placement, sides, growth, run, sentences, rounds, file, plugins) -> None:
    """Time a training step of paddle_tfm and of the same model in paddle.nn.Transformer, PyTorch's nn.Transformer
    (eager and compiled) and JoeyNMT, with the same batches, masks, dropout, optimizer and copied weights. The libraries
    take turns. On a busy machine, read the ratio of the fastest rounds. With --decode: time searches with the weights
    of a run in paddle_tfm, JoeyNMT and CTranslate2.

    PyTorch and CTranslate2 come with the extra [bench]; JoeyNMT with: pip install tensorboard importlib_metadata, and
    pip install --no-deps joeynmt==2.3.0 subword-nmt

    \b
    Examples:
      paddle-tfm bench
      paddle-tfm bench --size tiny --json tiny.json
      paddle-tfm bench --side torch --side joeynmt
      paddle-tfm bench --growth length --side torch
      paddle-tfm bench --decode runs/multi30k/default/seed-1 --side joeynmt
      paddle-tfm bench --recipe quickstart model.dropout=0.1
    """
    arguments: dict[str, Any] = {
        "sides": sides or None,
        "plugins": plugins,
        "report": lambda text: notes().print(f"[dim]{text}[/]"),
    }
    if rounds is not None:
        arguments["rounds"] = rounds
    result: dict | list[dict]
    _refuse_options(context, run)
    if run is not None:
        from paddle_tfm.bench import measure_decoding

        result = decoding = measure_decoding(run, sentences=sentences, **arguments)
        for job, figures in decoding["jobs"].items():
            _decoding_table(JOBS[job].format(**decoding), figures)
    elif growth is not None:
        from paddle_tfm.bench import measure_growth

        same = {"recipe": recipe, "overrides": overrides, "size": size, "placement": placement}
        result = measurements = measure_growth(growth, **same, **arguments)
        _growth_table(growth, measurements)
    else:
        from paddle_tfm.bench import measure

        result = measurement = measure(recipe, overrides, size, placement, **arguments)
        _step_table(measurement)
    if file is not None:
        file.write_text(json.dumps(result, indent=1), "utf-8")
        console().print(f"figures  {file}")


def _refuse_options(context: click.Context, run: Path | None) -> None:
    """Refuse options of decoding for a training step, and the reverse.

    Raises:
        UserError: there is such an option.
    """
    steps, searches = ("overrides", "recipe", "size", "placement", "growth"), ("sentences",)
    for name in searches if run is None else steps:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name]:
            option = "overrides" if name == "overrides" else f"--{name}"
            raise UserError(
                f"{option}: only with --decode RUN"
                if run is None
                else f"{option}: not with --decode, which takes everything from the run"
            )


def _facts(result: dict, growing: str = "") -> str:
    """What was measured, without the quantity that grows."""
    sizes = result["sizes"]
    facts = {
        "": f"d_model {sizes['d_model']}, {sizes['encoder_layers']}+{sizes['decoder_layers']} layers",
        "vocabulary": f"vocabularies {sizes['source_vocabulary']:,} and {sizes['target_vocabulary']:,}",
        "batch": f"batches of {sizes['max_tokens']:,} tokens",
        "dropout": f"dropout {sizes['dropout']}",
    }
    return f"One training step of {result['task']['name']}: " + ", ".join(
        fact for name, fact in facts.items() if not name or name != growing
    )


def _growth_table(what: str, several: list[dict]) -> None:
    """The table of a growth: a row for each size and side."""
    from rich.table import Table

    table = Table(title=_facts(several[0], what), title_justify="left")
    table.add_column(what, justify="right")
    table.add_column("side")
    for heading in ("ms", "lowest – highest", "target tokens/s", "ours is", "peak memory (MiB)"):
        table.add_column(heading, justify="right")
    for result in several:
        for i, (side, times) in enumerate(result["sides"].items()):
            table.add_row("" if i else f"{result[what]:,}", *_cells(result, side), _memory(times))
    console().print(table, soft_wrap=False)


def _cells(result: dict, side: str) -> list[str]:
    """Side, milliseconds, their range, tokens per second, and how many times as fast ours is."""
    times, ratio = result["sides"][side], result["ratio"].get(side)
    return [
        SIDES[side],
        f"{times['median_ms']:,.0f}",
        f"{times['low_ms']:,.0f} – {times['high_ms']:,.0f}",
        f"{times['tokens_per_second']:,.0f}",
        f"{ratio['median']:.2f} × ({ratio['low']:.2f} – {ratio['high']:.2f})" if ratio else "",
    ]


def _memory(times: dict) -> str:
    """The peak memory of the process; in brackets, the memory before its first step."""
    return "" if times["peak_mib"] is None else f"{times['peak_mib']:,} ({times['loaded_mib']:,})"


def _step_table(result: dict) -> None:
    """The table of training steps."""
    from rich.table import Table

    table = Table(title=_facts(result), title_justify="left")
    table.add_column("side")
    for heading in ("ms", "lowest – highest", "target tokens/s", "ours is", "fastest rounds", "peak memory (MiB)"):
        table.add_column(heading, justify="right")
    for side, times in result["sides"].items():
        ratio = result["ratio"].get(side)
        undisturbed = f"{ratio['undisturbed']:.2f} ×" if ratio else ""
        table.add_row(*_cells(result, side), undisturbed, _memory(times))
    console().print(table, soft_wrap=False)
    first = result["first_loss"]
    losses = ", ".join(f"{first[side]:.6f} {side}" for side in result["sides"])
    console().print(
        f"first loss, weights copied and dropout off: {losses} (largest difference {first['difference']:.1e})"
    )


def _decoding_table(job: str, figures: dict) -> None:
    """The table of one decoding job."""
    from rich.table import Table

    table = Table(title=f"{figures['sentences']:,} sentences, {job}", title_justify="left")
    table.add_column("side")
    for heading in ("seconds", "lowest – highest", "sentences/s", "ours is", "same output"):
        table.add_column(heading, justify="right")
    for side, times in figures["sides"].items():
        ratio = figures["ratio"].get(side)
        table.add_row(
            SIDES[side],
            f"{times['median']:,.2f}",
            f"{times['low']:,.2f} – {times['high']:,.2f}",
            f"{times['sentences_per_second']:,.1f}",
            f"{ratio['median']:.2f} × ({ratio['low']:.2f} – {ratio['high']:.2f})" if ratio else "",
            f"{figures['same'][side]:.1%}" if ratio else "",
        )
    console().print(table, soft_wrap=False)
