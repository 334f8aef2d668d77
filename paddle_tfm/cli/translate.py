"""`paddle-tfm translate RUN`: one line out for each line in, or by a decoder-only run what follows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from paddle_tfm.cli.common import create_registry, device_option, note, notes, plugin_option, use_device, warn
from paddle_tfm.cli.evaluate import checkpoint_option, engine_option, search_option
from paddle_tfm.cli.lines import STANDARD, LineSource, check_output, chunks, open_lines, writing
from paddle_tfm.errors import UserError
from paddle_tfm.units import plural

if TYPE_CHECKING:
    from paddle_tfm.inference.translate import Translation
    from paddle_tfm.train.run import Run

LENGTH = 200  # of a continuation, where --length does not say
OF_TRANSLATING = {  # parameters that mean nothing where a text is continued → options
    "nbest": "--nbest",
    "scores": "--scores",
    "prefix": "--prefix",
    "folder": "--attention",
    "batch_tokens": "--batch-tokens",
}
ONE_LINE = str.maketrans("\n\r", "  ")
ONE_CELL = str.maketrans("\n\r\t", "   ")


@click.command(name="translate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--input", "source", metavar="FILE", help="Lines to translate: UTF-8, .gz too, - for standard input.")
@click.option(
    "--output", "target", default=STANDARD, metavar="FILE", help="Where they go, .gz too. Default: standard output."
)
@click.option(
    "--nbest",
    type=click.IntRange(min=1),
    metavar="N",
    help="Up to N outputs of a line, best first, as TSV: line number (from 1), output. The search must give as many, "
    'for instance --search "{name: beam, size: N}".',
)
@click.option("--scores", is_flag=True, help="Two more columns: log-probability (in nats) and its mean a token.")
@click.option(
    "--prefix",
    default="",
    metavar="TEXT",
    help="What every output must begin with. It is cut into pieces like a whole output: end it with a whole word.",
)
@click.option(
    "--attention",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the cross-attention of the best outputs: alignments.txt (source-target, from 0: 0-1 2-0), "
    "source.pieces, target.pieces (with spaces between; ␣: a space within a piece), pictures of the first 20.",
)
@click.option(
    "--attention-layer",
    "layer",
    type=click.IntRange(min=0),
    metavar="N",
    help="The decoder layer of that cross-attention; 0: the lowest. Default: the last.",
)
@click.option(
    "--batch-tokens",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="N",
    help="Source tokens decoded at once, padding included; by several workers, at most twice as many. Fewer need less "
    "memory; a beam of N needs N times as much.",
)
@click.option(
    "--length",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of a decoder-only run: at most so many tokens after each TEXT; they may be more than the model sees at once "
    f"(model.max_length). Default: {LENGTH}.",
)
@search_option
@engine_option
@checkpoint_option
@plugin_option
@device_option
def command(
    run, texts, source, target, nbest, scores, prefix, folder, layer, batch_tokens, length, search,
    engine, checkpoint, plugins, device,
) -> None:  # fmt: skip
    """Translate each TEXT, or each line of --input (default: standard input), with the run in folder RUN; a
    decoder-only run (model.encoder_layers: 0) continues it instead.

    One line in, one line out, whatever bytes it holds; an empty line gives an empty one (with --nbest one empty
    output). Lines are read and written up to 2,000 at a time, and at once where no more have arrived: files may be of
    any length, and a program that sends a line through a pipe gets its answer. What is worth knowing is said at the
    end, on standard error: lines that were cut or are not UTF-8, the share of pieces unknown to the model.

    A decoder-only run writes each TEXT and what follows, as it comes, with an empty line between two of them; ""
    begins with nothing. Where the search draws, the same TEXT twice is continued in two ways.

    \b
    Examples:
      paddle-tfm translate runs/quickstart/pointer/seed-1 "Tuesday, March 5, 2024"
      paddle-tfm translate runs/quickstart/pointer/seed-1 < dates.txt > out.txt
      paddle-tfm translate RUN --input test.de.gz --output test.en
      paddle-tfm translate RUN --nbest 5 --scores --search "{name: beam, size: 5}" < in > out.tsv
      paddle-tfm translate RUN --nbest 3 --search "{name: sampling, top_p: 0.9, samples: 3}" < in
      paddle-tfm translate RUN --engine ctranslate2 --input test.de --output test.en
      paddle-tfm translate RUN --prefix "We" --attention maps "Wir gehen nach Hause ."
      paddle-tfm translate runs/tiny-gpt/4-layers/seed-1 "A man" --length 300
      paddle-tfm translate runs/tiny-gpt/4-layers/seed-1 "" --search "{name: sampling, temperature: 0.5, top_k: 20}"
    """
    if layer is not None and folder is None:
        raise UserError("--attention-layer says how --attention DIR draws; add that, or leave it out")
    lines = open_lines(texts, source)
    check_output(target, source)
    registry = create_registry(plugins)
    device = use_device(device)
    from paddle_tfm.export.engine import open_engine
    from paddle_tfm.inference.translate import Remarks
    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.train.run import load_run

    loaded = load_run(run, registry, checkpoint, warn)
    _refuse_of_the_other_kind(loaded)
    built = registry.build("search", yaml_lines.value(search), "--search") if search else loaded.search()
    undecodable: list[int] = []
    alignments = _alignment_folder(folder)
    decode = open_engine(loaded, engine, built, checkpoint, scores, device, note)
    if loaded.is_decoder_only:

        def continued(prompt: str, number: int, write: Callable[[str], None]) -> str:
            output = loaded.generate(prompt, length or LENGTH, built, number=number, on_text=write, decode=decode)
            return output.text

        _continue_texts(continued, lines, undecodable, target)
        for sentence in _undecodable(lines.name, undecodable):
            warn(sentence)
        return
    remarks = Remarks(loaded.model, loaded.codec, built)
    options = {"nbest": nbest or 1, "prefix": prefix, "max_tokens": batch_tokens, "decode": decode}

    def translate(chunk: list[str], first: int, progress: Callable[[int], None] | None) -> str:
        outputs = loaded.hypotheses(chunk, built, first=first, progress=progress, **options)
        best = [of_line[0] for of_line in outputs]
        remarks.add(chunk, best)
        if alignments is not None:
            from paddle_tfm.inference.alignment import align

            alignments.add(align(loaded.model, loaded.codec, chunk, best, layer, batch_tokens))
        numbered = enumerate(outputs, first + 1)
        return "".join(_row(number, output, nbest, scores) for number, of_line in numbered for output in of_line)

    _translate_chunks(translate, lines, undecodable, target, few=bool(texts))
    for sentence in [*_undecodable(lines.name, undecodable), *remarks.sentences()]:
        warn(sentence)


def _refuse_of_the_other_kind(run: Run) -> None:
    """Raises UserError where there is an option that means nothing for a run of this kind."""
    context = click.get_current_context()
    passed = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if not run.is_decoder_only and "length" in passed:
        raise UserError(
            f"--length is of runs that continue a text, but {run.folder} is {run.settings.model.shape}; its search "
            'says how long outputs are: --search "{name: beam, max_length: 50}"'
        )
    for name, option in OF_TRANSLATING.items():
        if run.is_decoder_only and name in passed:
            raise UserError(f"{option} is of runs that translate, but {run.folder} is decoder-only: leave it out")


def _undecodable(name: str, numbers: list[int]) -> Iterator[str]:
    """What is said of lines that are not UTF-8."""
    if numbers:
        which = f"line {numbers[0]} is" if len(numbers) == 1 else f"{len(numbers):,} lines are"
        first = "" if len(numbers) == 1 else f" (the first: line {numbers[0]})"
        yield f"{name}: {which} not UTF-8{first}; bytes that are no character were read as �"


def _translate_chunks(translate: Callable, lines: LineSource, undecodable: list[int], target: str, few: bool) -> None:
    """Write what `translate(chunk, number of its first line, progress)` returns for each chunk of lines, and add the
    numbers of those that are not UTF-8 to `undecodable`. A progress bar shows unless there are `few` lines, or lines
    and outputs appear on the same terminal."""
    quiet = few or lines.interactive or (target == STANDARD and sys.stdout.isatty())
    write, done = None, 0
    try:
        with ExitStack() as stack:
            progress = None if quiet else stack.enter_context(_bar(lines.total))
            for chunk in chunks(lines, undecodable):
                output = translate(chunk, done, progress)
                write = write or stack.enter_context(writing(target))
                write(output)
                done += len(chunk)
    except KeyboardInterrupt:
        notes().print(f"[yellow]Stopped after {plural(done, 'line')}, which are written.[/]")
        raise


def _continue_texts(continued: Callable, lines: LineSource, undecodable: list[int], target: str) -> None:
    """Write each line and what `continued(line, its number, write)` returns, which calls `write` with its parts as they
    come. A line appears with the first of them, so that an error comes alone."""
    opened: Callable[[str], object] | None = None
    before, number = "", 0

    with ExitStack() as stack:

        def write(text: str) -> None:
            nonlocal opened, before
            opened = opened or stack.enter_context(writing(target))
            opened(before + text)
            before = ""

        for chunk in chunks(lines, undecodable):
            for prompt in chunk:
                before = ("\n" if number else "") + prompt
                text = prompt + continued(prompt, number, write)
                write("" if text.endswith("\n") else "\n")
                number += 1
        if not number:
            write("")


def _row(number: int, output: Translation, nbest: int | None, scores: bool) -> str:
    if nbest is None and not scores:
        return output.text.translate(ONE_LINE) + "\n"
    line = [] if nbest is None else [str(number)]
    columns = [f"{output.score:.4f}", f"{output.mean:.4f}"] if scores else []
    return "\t".join([*line, output.text.translate(ONE_CELL), *columns]) + "\n"


def _alignment_folder(folder: Path | None):
    if folder is None:
        return None
    from paddle_tfm.inference.alignment import AlignmentFolder

    return AlignmentFolder(folder, warn)


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on standard error, if that is a terminal; yields a callback for the number of finished lines."""
    if not notes().is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = BarColumn(), MofNCompleteColumn(), TextColumn("lines"), TimeRemainingColumn()
    with Progress(*columns, console=notes(), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda lines: progress.advance(task, lines)
