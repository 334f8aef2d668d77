"""`paddle-tfm translate RUN`: one line out for each line in, or by a decoder-only run what follows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from paddle_tfm.cli.common import (
    STANDARD,
    check_output,
    create_registry,
    device_option,
    note,
    plugin_option,
    use_device,
    warn,
)
from paddle_tfm.cli.evaluate import checkpoint_option, search_option
from paddle_tfm.cli.translate.lines import Beside, answer, open_lines
from paddle_tfm.errors import UserError
from paddle_tfm.inference.terms import Terms
from paddle_tfm.language import _

if TYPE_CHECKING:
    from paddle_tfm.train.run import Run

LENGTH = 200  # of a continuation, where --length does not say
OF_TRANSLATING = {  # parameters that mean nothing where a text is continued → options
    "nbest": "--nbest",
    "scores": "--scores",
    "prefix": "--prefix",
    "prefixes": "--prefixes",
    "translations": "--score",
    "ensemble": "--ensemble",
    "terms": "--terms",
    "folder": "--attention",
    "batch_tokens": "--batch-tokens",
}
OF_SEARCHING = {  # parameters that mean nothing where given translations are scored → options
    "nbest": "--nbest",
    "prefix": "--prefix",
    "prefixes": "--prefixes",
    "terms": "--terms",
    "folder": "--attention",
    "search": "--search",
    "engine": "--engine",
}


@click.command(name="translate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--input", "source", metavar="FILE", help="Lines to translate, packed or not; - for standard input.")
@click.option("--encoding", metavar="NAME", help="Of the lines: gb18030, latin-1, utf-16, … Default: UTF-8.")
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
    "--prefixes", metavar="FILE", help="A prefix for each line: what its output must begin with; it may be empty."
)
@click.option(
    "--terms",
    metavar="FILE",
    help="Lines of a source term, a TAB and target words: where a line holds the term, its outputs hold the words. The "
    'search must place them, for instance --search "{name: beam, size: 8}".',
)
@click.option(
    "--score",
    "translations",
    metavar="FILE",
    help="Translate nothing: FILE holds a translation of each line; write its log-probability, in nats (natural "
    "logarithm), the sum over its pieces and the end token. With --scores: the translation, that, its mean a token.",
)
@click.option(
    "--ensemble",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="A further run with the same pieces, once or more: at each step, the mean of the probabilities of all. "
    "--attention is that of the first.",
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
@click.option(
    "--engine",
    type=click.Choice(["auto", "paddle", "ctranslate2"]),
    default="auto",
    show_default=True,
    help="The engine that decodes. auto: CTranslate2 if it is installed (the extra [ctranslate2]), the search is "
    "greedy, and the run's export gave the same outputs as Paddle; else Paddle. Standard error says which, "
    "and why. The export is made once, in the run's folder, but not for TEXTs. ctranslate2: about twice as "
    "fast on a CPU. Its beam search ends when 2 · `size` outputs are complete, so some outputs differ "
    "(docs/export.md: how many).",
)
@checkpoint_option
@plugin_option
@device_option
def command(
    run, texts, source, encoding, target, nbest, scores, prefix, prefixes, terms, translations, ensemble, folder, layer,
    batch_tokens, length, search, engine, checkpoint, plugins, device,
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
      paddle-tfm translate RUN --ensemble RUN2 --ensemble RUN3 --input test.de --output test.en
      paddle-tfm translate RUN --terms terms.tsv --search "{name: beam, size: 8}" --input test.de --output test.en
      paddle-tfm translate RUN --score test.en --input test.de > log-probabilities.txt
      paddle-tfm translate runs/tiny-gpt/4-layers/seed-1 "A man" --length 300
      paddle-tfm translate runs/tiny-gpt/4-layers/seed-1 "" --search "{name: sampling, temperature: 0.5, top_k: 20}"
    """
    if layer is not None and folder is None:
        raise UserError(_("--attention-layer needs --attention DIR; add it, or leave both out"))
    if translations is not None:
        _refuse_beside_score()
    if prefix and prefixes is not None:
        raise UserError(_("--prefix is one for all lines, --prefixes one for each; use one of them"))
    if (ours := "--ensemble" if ensemble else "--terms" if terms is not None else "") and engine == "ctranslate2":
        raise UserError(_("{option} is computed by Paddle; leave --engine ctranslate2 out").format(option=ours))
    lines = open_lines(texts, source, encoding)
    beside = Beside(file, encoding) if (file := translations or prefixes) is not None else None
    required = None if terms is None else Terms.read(terms)
    for read in (source, file, terms):
        check_output(target, read)
    registry = create_registry(plugins)
    device = use_device(device)
    from paddle_tfm.cli.translate.jobs import Continuing, Scoring, Translating
    from paddle_tfm.export.ctranslate2.rules import Rules
    from paddle_tfm.export.engine import open_engine
    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.train.run import load_run

    loaded = load_run(run, registry, checkpoint, warn)
    _refuse_of_the_other_kind(loaded)
    job: Continuing | Scoring | Translating
    others = [load_run(each, registry, checkpoint, warn) for each in ensemble]
    decode = loaded.ensemble(others) if others else None
    if translations is not None and beside is not None:
        job = Scoring(loaded, others, beside, scores, batch_tokens)
    else:
        built = registry.build("search", yaml_lines.value(search), "--search") if search else loaded.search()
        if not ours:
            make = not texts
            decode = open_engine(loaded, Rules(registry), engine, built, checkpoint, scores, device, make, note)
        if loaded.is_decoder_only:
            job = Continuing(loaded, built, length or LENGTH, decode)
        else:
            options = {"prefix": prefix, "max_tokens": batch_tokens, "decode": decode}
            job = Translating(loaded, built, nbest, scores, folder, layer, beside, required, **options)
    answer(lines, job, target)
    if beside is not None:
        beside.require_end()
    lines.warn_of_undecodable()
    for sentence in job.remarks():
        warn(sentence)


def _passed() -> set[str]:
    """The parameters that stand on the command line."""
    context = click.get_current_context()
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _refuse_beside_score() -> None:
    """Raises UserError where an option means nothing for translations that are given."""
    for name, option in OF_SEARCHING.items():
        if name in _passed():
            text = _("--score scores translations that are given, and searches for none; leave {option} out")
            raise UserError(text.format(option=option))


def _refuse_of_the_other_kind(run: Run) -> None:
    """Raises UserError where there is an option that means nothing for a run of this kind."""
    passed = _passed()
    if not run.is_decoder_only and "length" in passed:
        text = _(
            "--length is of runs that continue a text, but {folder} is {shape}; its search says how long outputs are"
        )
        text = text.format(folder=run.folder, shape=run.settings.model.shape)
        raise UserError(_('{text}: --search "{{name: beam, max_length: 50}}"').format(text=text))
    if run.model.decoder is None and "translations" in passed:
        text = _(
            "--score is of runs with a decoder, but {folder} labels its source: `evaluate --hypotheses` scores labels"
        )
        raise UserError(text.format(folder=run.folder))
    for name, option in OF_TRANSLATING.items():
        if run.is_decoder_only and name in passed:
            text = _("{option} is of runs that translate, but {folder} is decoder-only: leave it out")
            raise UserError(text.format(option=option, folder=run.folder))
