"""The card as one HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from paddle_tfm import units
from paddle_tfm.card.facts import DECODER_ONLY, RunFacts
from paddle_tfm.caveats import said
from paddle_tfm.comparison.report import recipe_words, scores_by_length
from paddle_tfm.comparison.report.attention_maps import (
    MOST_PIECES,
    ROWS_AND_COLUMNS,
    Reader,
    Sentence,
    attention_maps,
)
from paddle_tfm.comparison.report.figures.line_chart import LineChart, Series
from paddle_tfm.comparison.report.outputs import choose, examples
from paddle_tfm.comparison.report.sections.how import environment
from paddle_tfm.comparison.report.sections.training import curve_chart
from paddle_tfm.comparison.runs.curves import mean_points, read_curves
from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.errors import UserError
from paddle_tfm.inference.attention_weights import read_by
from paddle_tfm.language import _
from paddle_tfm.pages.document import Section, commands, definitions, document, notes
from paddle_tfm.protocols import Metric
from paddle_tfm.tabular import Table, column
from paddle_tfm.train.run import Run

FILE = "report.html"
HANDY = 12  # characters of a text that a decoder-only model was trained on, whose attention is shown
PIECES = (
    4,
    14,
)  # of a text whose attention is shown where none was chosen: fewer say little, more have no room on a phone
SPLITS = {"test": "test", "valid": "validation"}  # as results name them and as people do


def page(facts: RunFacts, metrics: dict[str, Metric], run: Run | None = None, chosen: Sequence[str] = ()) -> str:
    """The whole card.

    Args:
        metrics: those of the recipe that texts suffice for. run: the model; without it no attention is shown. chosen:
            texts on which attention is shown, instead of one of the test's.
    """
    sources = [item.source for item in facts.predictions if item.source.strip()]
    sources = sources or [source for source, _ in facts.about.get("samples", []) if source.strip()]
    sections = [
        Section(_("How to use it"), _usage(facts, sources), folded=False),
        Section(_("Scores"), _scores(facts, metrics), folded=False),
        Section(_("Outputs"), _outputs(facts, run), _("what it wrote for texts of the test")),
    ]
    if run is not None:
        texts = sources or [target[:HANDY] for _, target in facts.about.get("samples", [])]
        sections.append(Section(_("Attention"), _attention(run, texts, chosen), _("where every head looks")))
    title = _("train it on") if facts.proof else _("train it again")
    again = definitions([(title, _again(facts)), *environment(facts.about.get("trainings", []))])
    if facts.proof:
        sections.append(Section(_("Where it comes from"), _origin(facts), _("its files, and what they wrote there")))
    sections += [
        Section(_("Learning curves"), _curves(facts), _("validation score and loss of training")),
        Section(_("What it is"), _what(facts), _("task, data, model and training")),
        Section(_("What it cannot do"), _limits(facts), _("lengths and texts beyond which nothing is known of it")),
        Section(_("Again"), again, _("the command that trains it; machine and versions")),
    ]
    compared = f'<p class="compared">{escape(facts.summary())}</p>'
    return document(
        f"{facts.name} · {_('model card')}", _("Model card"), facts.name, "", facts.lead(), compared, sections
    )


def _prompt(facts: RunFacts) -> str:
    """The beginning of a text that the model was trained on, whatever its language: a word, or some characters."""
    words = " ".join(target for _, target in facts.about.get("samples", [])).split()
    return words[0][:12] if words else ""


def _usage(facts: RunFacts, sources: list[str]) -> str:
    shown = units.as_typed(facts.folder)
    folder, continues = units.in_shell(shown), facts.shape == DECODER_ONLY
    text = _prompt(facts) if continues else sources[0][:80] if sources else "a text"
    end = "-- " if text.startswith("-") else ""  # of the options
    shell = [f"paddle-tfm translate {folder} {end}{shlex.quote(text)}"]
    call = f"run.generate({text!r}).text" if continues else f"run.translate([{text!r}])"
    if not continues:
        shell.append(f"paddle-tfm evaluate {folder} --buckets")
    if facts.shape == "encoder-decoder":
        shell.append(f"paddle-tfm export {folder} --to ctranslate2")
    load = f"run = paddle_tfm.load_run({str(shown)!r})"
    return definitions(
        [
            (_("from a shell"), commands(shell)),
            (_("from Python"), commands([f"import paddle_tfm  # before paddle\n\n{load}\nprint({call})"])),
        ]
    )


def _origin(facts: RunFacts) -> str:
    """What an imported run was made of, and what its own toolkit wrote beside what it writes."""
    origin = facts.proof["origin"]
    names = ((_("toolkit"), "toolkit"), (_("version"), "version"), (_("model"), "model"))
    rows = [(title, escape(str(origin[key]))) for title, key in names if origin.get(key)]
    count, same = _("outputs the same"), _("of another probability")
    for each in facts.proof["compared"]:
        text = f"{each['same']:,} / {each['sentences']:,}"
        if others := each["sentences"] - each["same"] - each["ties"]:
            text += f" ({others:,} {same})"
        rows.append((f"{count}: {Path(each['output']).name}", escape(text)))
    return definitions(rows) + notes(facts.proof["remarks"])


def _scores(facts: RunFacts, metrics: dict[str, Metric]) -> str:
    results = facts.results
    if not results or not (results["valid"] or results["test"]):
        return f"<p>{_('There are none yet.')}</p>"
    arrows = {True: " ↑", False: " ↓", None: ""}
    directions = {"loss": False, **results["directions"]}
    splits = {words: results[split] for split, words in SPLITS.items() if results[split]}
    splits |= {test: each["scores"] for test, each in (results.get("tests") or {}).items()}

    def score(split: str) -> Callable[[str], str]:
        return lambda name: facts.text(name, splits[split].get(name))

    columns = [
        column("metric", of=lambda name: units.metric_name(name) + arrows[directions.get(name)]),
        *(column(split, of=score(split), right=True) for split in splits),
    ]
    names = list(dict.fromkeys([facts.deciding, *results["test"], *results["valid"]]))
    text = Table(columns, names, _("the best checkpoint, chosen by the validation split")).html()
    text += notes(said({facts.name: [results]}))
    for name, signature in results.get("signatures", {}).items():
        text += f'<p class="note">{escape(units.metric_name(name))}: <code>{escape(signature)}</code></p>'
    if not facts.predictions or not metrics:
        return text
    name = facts.deciding if facts.deciding in metrics else next(iter(metrics))
    return text + _by_length(facts, name, metrics[name])


def _by_length(facts: RunFacts, name: str, metric: Metric) -> str:
    by_length = scores_by_length.scores_by_length({name: {0: facts.predictions}}, metric)
    if by_length is None:
        return ""
    title, unit = units.metric_name(name), metric.unit
    chart = scores_by_length.chart(by_length, {name: 0}, title, unit, metric.higher_is_better)
    rows = scores_by_length.table(by_length, [name], unit, title)
    return f"<h3>{_('By length')}</h3>{chart.html()}{rows.html()}"


def _outputs(facts: RunFacts, run: Run | None) -> str:
    if facts.predictions:
        return examples(choose({facts.name: facts.predictions}), {facts.name: 0})
    if run is not None and facts.shape == DECODER_ONLY:
        text = run.generate("", 200).text
        return f'<p>{_("A text that it writes from nothing:")}</p><p class="text" dir="auto">{escape(text)}</p>'
    return examples([], {})


def _attention(run: Run, texts: Sequence[str], chosen: Sequence[str]) -> str:
    """The maps of the chosen texts, or of the first one of a handy length; a sentence where nothing can be shown."""
    handy = (text for text in texts if PIECES[0] <= len(run.codec.source.tokenize(text)) <= PIECES[1])
    sentences, lacking = [], []
    for text in chosen or islice(handy, 1):
        try:
            reading = read_by(run, text)
        except UserError as error:
            lacking.append(f"“{text}”: {error}")
            continue
        heading = (
            f'<p>{_("output:")} <span dir="auto">{escape(reading.output)}</span></p>' if reading.output != text else ""
        )
        sentences.append(Sentence(text, [Reader(heading, [item.cut(MOST_PIECES) for item in reading.attentions])]))
    if not sentences and not lacking:
        none = _("No text of a length that can be drawn is known; paddle-tfm report --sentence TEXT chooses one.")
        return f"<p>{none}</p>"
    return attention_maps(sentences, [ROWS_AND_COLUMNS, *lacking])


def _curves(facts: RunFacts) -> str:
    charts = "".join(chart.html() for chart in _charts(facts))
    return f'<div class="charts">{charts}</div>' if charts else f"<p>{_('No step was logged.')}</p>"


def _charts(facts: RunFacts) -> Iterator[LineChart]:
    curves, result = read_curves(facts.folder), Result(facts.folder, "", 0, facts.results)
    for metric in dict.fromkeys((facts.deciding, None)):
        if points := mean_points([result], [curves], metric, "steps"):
            unit = facts.unit(metric) if metric else ""
            higher = bool(metric and facts.results.get("directions", {}).get(metric))
            yield curve_chart([Series(0, "it", points)], metric, "steps", unit, higher)


def _what(facts: RunFacts) -> str:
    summaries = filter(None, [str(facts.recipe.get("summary") or "")])
    parameters = facts.results.get("parameters") or facts.about.get("parameters")
    samples = [(source, target) for source, target in facts.about.get("samples", [])]
    size = _("{number} parameters").format(number=f"{parameters:,}") if parameters else ""
    known = recipe_words.described(facts.recipe, summaries, facts.about, samples, size)
    speed = escape(_speed(facts.results))
    return definitions(
        [*known, (_("speed of training"), speed), (_("folder"), f"<code>{escape(str(facts.folder))}</code>")]
    )


def _speed(results: Mapping[str, Any]) -> str:
    """Of the training, as it was logged."""
    if not results:
        return _("not finished")
    rate, seconds = results["tokens_per_second"], results["seconds"]
    text = _("{rate} target tokens a second, {seconds} s of training steps")
    parts = [text.format(rate=f"{rate:,.0f}", seconds=f"{seconds:,.0f}")]
    if wall := results.get("wall_seconds"):
        parts.append(_("{seconds} s with evaluations and checkpoints").format(seconds=f"{wall:,.0f}"))
    return _("; ").join(parts)


def _limits(facts: RunFacts) -> str:
    longest = facts.recipe.get("model", {}).get("max_length")
    window, most = _("It reads and writes at most {most} tokens (model.max_length)."), longest or 0
    if facts.shape == DECODER_ONLY:
        window = _("It sees at most the last {most} tokens of a text that it continues (model.max_length).")
        most -= 1
    sentences = [
        window.format(most=f"{most:,}") if longest else "",
        *_scored(facts),
    ]
    if dropped := facts.results.get("dropped"):
        by = _("{number} by {setting}")
        counts = [by.format(number=f"{count:,}", setting=setting) for setting, count in dict(dropped).items()]
        sentences.append(_("Some of its texts were left out: {counts}.").format(counts=_(", ").join(counts)))
    if not facts.results:
        sentences.insert(0, _("It is not finished: its last checkpoint is what there is."))
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)


def _scored(facts: RunFacts) -> list[str]:
    """What its scores do not say."""
    if facts.proof:
        return [_("It was trained elsewhere: whether the texts on which it is scored were among its own is not known.")]
    return [
        _("It was scored on texts like those that it was trained on; of others these scores say nothing."),
        _("It is one training with one seed: how far another seed would be from it, only a comparison says."),
    ]


def _again(facts: RunFacts) -> str:
    folder = units.as_typed(facts.folder)
    begin, out = (f" train.from={units.in_shell(folder)}", "tuned") if facts.proof else ("", "again")
    return commands([f"paddle-tfm run {units.in_shell(folder / 'recipe.yaml')}{begin} --out runs/{out}"])
