"""The card as one HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path

from paddle_tfm import units
from paddle_tfm.card import attention, lengths, samples, speed
from paddle_tfm.card.facts import DECODER_ONLY, RunFacts
from paddle_tfm.caveats import said
from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.sections.again import environment
from paddle_tfm.comparison.runs.curves import AXES, mean_points, read_curves
from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import Series, line_chart
from paddle_tfm.pages.document import Section, commands, definitions, document, table
from paddle_tfm.protocols import Metric
from paddle_tfm.train.run import Run

FILE = "report.html"
HANDY = 12  # characters of a text that a decoder-only model was trained on, whose attention is shown
SPLITS = {"test": "test", "valid": "validation"}  # as results name them and as people do


def page(facts: RunFacts, metrics: dict[str, Metric], run: Run | None = None, chosen: Sequence[str] = ()) -> str:
    """The whole card.

    Args:
        metrics: those of the recipe that texts suffice for. run: the model; without it nothing is measured. chosen:
            texts on which attention is shown, instead of one of the test's.
    """
    sources = [item.source for item in facts.predictions if item.source.strip()]
    sources = sources or [source for source, _ in facts.about.get("samples", []) if source.strip()]
    sections = [
        Section("How to use it", _usage(facts, sources)),
        Section("Scores", _scores(facts, metrics)),
        Section("Outputs", _outputs(facts, run)),
    ]
    if run is not None:
        texts = sources or [target[:HANDY] for _, target in facts.about.get("samples", [])]
        sections.append(Section("Attention", attention.html(run, texts, chosen)))
    sections += [
        Section("Learning curves", _curves(facts)),
        Section("What it is", _what(facts)),
        Section("Speed", _speed(facts, run, sources)),
        Section("What it cannot do", _limits(facts)),
        Section(
            "Again", definitions([("train it again", _again(facts)), *environment(facts.about.get("trainings", []))])
        ),
    ]
    compared = f'<p class="compared">{escape(facts.summary())}</p>'
    return document(f"{facts.name} · model card", "Model card", facts.name, facts.lead(), compared, sections)


def _shown(folder: Path) -> Path:
    """The folder as the user would name it."""
    folder = folder.resolve()
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _prompt(facts: RunFacts) -> str:
    """The beginning of a text that the model was trained on, whatever its language: a word, or some characters."""
    words = " ".join(target for _, target in facts.about.get("samples", [])).split()
    return words[0][:12] if words else ""


def _usage(facts: RunFacts, sources: list[str]) -> str:
    shown = _shown(facts.folder)
    folder = units.in_shell(shown)
    if facts.shape == DECODER_ONLY:
        prompt = _prompt(facts)
        end = "-- " if prompt.startswith("-") else ""  # of the options
        shell = [f"paddle-tfm translate {folder} {end}{shlex.quote(prompt)}"]
        call = f"run = paddle_tfm.load_run({str(shown)!r})\nprint(run.generate({prompt!r}).text)"
    else:
        source = sources[0][:80] if sources else "a text"
        end = "-- " if source.startswith("-") else ""  # of the options
        shell = [f"paddle-tfm translate {folder} {end}{shlex.quote(source)}", f"paddle-tfm evaluate {folder} --buckets"]
        call = f"run = paddle_tfm.load_run({str(shown)!r})\nprint(run.translate([{source!r}]))"
    if facts.shape == "encoder-decoder":
        shell.append(f"paddle-tfm export {folder} --to ctranslate2")
    return definitions(
        [
            ("from a shell", commands(shell)),
            ("from Python", commands([f"import paddle_tfm  # before paddle\n\n{call}"])),
        ]
    )


def _scores(facts: RunFacts, metrics: dict[str, Metric]) -> str:
    results = facts.results
    if not results or not (results["valid"] or results["test"]):
        return "<p>There are none yet.</p>"
    names = list(dict.fromkeys([facts.deciding, *results["test"], *results["valid"]]))
    arrows = {True: " ↑", False: " ↓", None: ""}
    directions = {"loss": False, **results["directions"]}
    rows, splits, tests = [], [split for split in SPLITS if results[split]], results.get("tests") or {}
    for name in names:
        cells = [facts.text(name, results[split].get(name)) for split in splits]
        cells += [facts.text(name, tests[test]["scores"].get(name)) for test in tests]
        rows.append([escape(units.metric_name(name)) + arrows[directions.get(name)], *cells])
    header = ["metric", *(SPLITS[split] for split in splits), *tests]
    text = table("the best checkpoint, chosen by the validation split", header, rows)
    text += "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in said({facts.name: [results]}))
    for name, signature in results.get("signatures", {}).items():
        text += f'<p class="note">{escape(units.metric_name(name))}: <code>{escape(signature)}</code></p>'
    if not facts.predictions or not metrics:
        return text
    name = facts.deciding if facts.deciding in metrics else next(iter(metrics))
    return text + lengths.html(name, metrics[name], facts.predictions)


def _outputs(facts: RunFacts, run: Run | None) -> str:
    if facts.predictions:
        return samples.html(facts.predictions)
    if run is not None and facts.shape == DECODER_ONLY:
        text = run.generate("", 200).text
        return f'<p>A text that it writes from nothing:</p><p class="text" dir="auto">{escape(text)}</p>'
    return (
        "<p>None were recorded: there is no test split, no metric needs them, or the run did not come to its end.</p>"
    )


def _curves(facts: RunFacts) -> str:
    curves = read_curves(facts.folder)
    result = Result(facts.folder, "", 0, facts.results)
    figures = []
    for metric in dict.fromkeys((facts.deciding, None)):
        points = mean_points([result], [curves], metric, "steps")
        if not points:
            continue
        unit = facts.unit(metric) if metric else ""
        higher = bool(metric and facts.results.get("directions", {}).get(metric))
        y = fit([point.y for point in points], units.bounds(unit, higher), log=not unit and not higher)
        what = f"validation {units.metric_name(metric)}" if metric else "loss of training"

        name = partial(units.tick, unit=unit)
        texts = (what, AXES["steps"], f"{what} by training steps; it ends at {name(points[-1].y)}")
        figures.append(
            line_chart([Series(0, what, points)], fit([0.0, *(point.x for point in points)]), y, texts, name)
        )
    return f'<div class="charts">{"".join(figures)}</div>' if figures else "<p>No step was logged.</p>"


def _what(facts: RunFacts) -> str:
    summary = str(facts.recipe.get("summary") or "")
    task = escape(recipe_words.component(facts.recipe.get("task", ""))) + (
        f"<br>“{escape(summary)}”" if summary else ""
    )
    parameters = facts.results.get("parameters") or facts.about.get("parameters")
    return definitions(
        [
            ("task", task),
            ("data", escape(recipe_words.data(facts.about))),
            (
                "for example",
                recipe_words.pairs([(source, target) for source, target in facts.about.get("samples", [])]),
            ),
            ("tokenizer", escape(recipe_words.component(facts.recipe.get("tokenizer", "")))),
            ("model", escape(recipe_words.model(facts.section("model")))),
            ("size", f"{parameters:,} parameters" if parameters else ""),
            ("training", escape(recipe_words.training(facts.section("train")))),
            ("output by", escape(recipe_words.component(facts.recipe.get("search", "")))),
            ("folder", f"<code>{escape(str(facts.folder))}</code>"),
        ]
    )


def _speed(facts: RunFacts, run: Run | None, sources: list[str]) -> str:
    items = [("training", escape(speed.training(facts.results)))]
    if run is not None and (sources or facts.shape == DECODER_ONLY):
        items.append(("writing", escape(speed.writing(run, sources))))
    return definitions(items)


def _limits(facts: RunFacts) -> str:
    longest = facts.section("model").get("max_length")
    window = f"It reads and writes at most {longest:,} tokens (model.max_length)." if longest else ""
    if longest and facts.shape == DECODER_ONLY:
        window = f"It sees at most the last {longest - 1:,} tokens of a text that it continues (model.max_length)."
    sentences = [
        window,
        "It was scored on texts like those that it was trained on; of others these scores say nothing.",
        "It is one training with one seed: how far another seed would be from it, only a comparison says.",
    ]
    if dropped := facts.results.get("dropped"):
        counts = ", ".join(f"{count:,} beyond {bound}" for bound, count in dict(dropped).items())
        sentences.append(f"It has not seen some training examples: {counts}.")
    if not facts.results:
        sentences.insert(0, "It is not finished: its last checkpoint is what there is.")
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)


def _again(facts: RunFacts) -> str:
    return commands([f"paddle-tfm run {units.in_shell(_shown(facts.folder / 'recipe.yaml'))} --out runs/again"])
