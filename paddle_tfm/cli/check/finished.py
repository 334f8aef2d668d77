"""`paddle-tfm check RUN`: whether runs are whole, of this code and of their texts; and of one that diverged the step in
which it did, once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddle_tfm.cli.common import console, echo
from paddle_tfm.cli.doctor import Report
from paddle_tfm.cli.tables import print_table
from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text
from paddle_tfm.language import _, english
from paddle_tfm.tabular import Column, Table

if TYPE_CHECKING:
    import numpy as np

    from paddle_tfm.data.batches import Batch
    from paddle_tfm.registry import Registry
    from paddle_tfm.train.divergence import Output
    from paddle_tfm.train.run import Run

LAYERS, TEXTS, PIECES = 12, 3, 24  # that are shown: before the first wrong layer; of a batch; of a text


def check_runs(folder: Path, registry: Registry, with_data: bool, as_json: bool) -> None:
    """Say what is found of the run in `folder`, or of each of its runs. `with_data`: whether their texts are read.

    Raises:
        UserError: no run is there, or half of one.
        click.exceptions.Exit: something is bad.
    """
    from rich.text import Text

    from paddle_tfm.runs.check import lacking

    runs = runs_in(folder)
    if len(runs) == 1 and (sentence := lacking(runs[0])):
        raise UserError(sentence)
    records = []
    for run in runs:
        if len(runs) > 1 and not as_json:
            console().print(Text(str(run), style="bold"), soft_wrap=True)
        with english() if as_json else nullcontext():
            records.append(_check(run, registry, with_data, None if as_json else Report(width=14)))
    is_bad = any(finding["mark"] == "bad" for record in records for finding in record["findings"])
    if as_json:
        echo(json_text(records), nl=False)
    else:
        sentence = _("Something is wrong, see above.") if is_bad else _("All that could be checked is whole.")
        console().print(sentence, soft_wrap=True)
    if is_bad:
        raise click.exceptions.Exit(1)


def runs_in(folder: Path) -> list[Path]:
    """A folder itself where it is half a run; else `runs_below` it.

    Raises:
        UserError: none is there.
    """
    if any((folder / name).exists() for name in ("recipe.yaml", "checkpoints")):
        return [folder]
    from paddle_tfm.runs.folders import runs_below

    runs = runs_below(folder)
    if not runs:
        raise UserError(
            _("{folder}: no run is here, and no recipe; `paddle-tfm ls runs` shows where runs are").format(
                folder=folder
            )
        )
    return runs


def _check(run: Path, registry: Registry, with_data: bool, report: Report | None) -> dict[str, Any]:
    """What is found of one run, for programs; `report` prints it meanwhile."""
    from rich.text import Text

    from paddle_tfm.runs.check import findings
    from paddle_tfm.train.divergence import FOLDER

    rows: list[dict[str, str]] = []

    def add(mark: str, subject: str, sentence: str) -> None:
        rows.append({"mark": mark, "subject": subject, "sentence": sentence})
        if report is not None:
            report.add(mark, subject, sentence)

    for finding in findings(run, registry, with_data):
        add(*finding)
    again = None
    if any(finding["mark"] != "bad" and finding["subject"] == FOLDER for finding in rows):
        try:
            again = _step_again(run, registry)
            add("note", "divergence", again.sentence)
        except UserError as error:  # such as a plugin that is not loaded
            add("bad", "divergence", str(error))
    if again is None:
        return {"run": str(run), "findings": rows, "diverged": None}
    if report is not None:
        print_table(_table(again.before_the_first_wrong()), _("in --json"))
        for text in again.texts:
            console().print(Text(text), soft_wrap=True)
    diverged = {"layers": _table(again.layers).records(), "texts": again.texts}
    return {"run": str(run), "findings": rows, "diverged": diverged}


@dataclass(frozen=True)
class StepAgain:
    """The step in which a run diverged, done again: what was no number, and where it began; what every layer computed;
    and what the batches hold."""

    sentence: str
    layers: Sequence[Output]
    texts: Sequence[str]

    def before_the_first_wrong(self) -> Sequence[Output]:
        """The first layer whose output is not finite, and some before it."""
        first = next((number for number, each in enumerate(self.layers) if each.wrong), len(self.layers) - 1)
        return self.layers[max(0, first - LAYERS) : first + 1]


def _step_again(folder: Path, registry: Registry) -> StepAgain:
    """Forward and backward, without an update.

    Raises:
        UserError: what was kept of it is damaged, or the run cannot be loaded.
    """
    from paddle_tfm.model.size import trained_parameters
    from paddle_tfm.train import divergence
    from paddle_tfm.train.run import load_run
    from paddle_tfm.train.step import Step

    run = load_run(folder, registry, divergence.FOLDER)
    state, batches = divergence.read_kept(folder / "checkpoints" / divergence.FOLDER)
    parameters = trained_parameters(run.model)
    optimizer = run.plan.components["train.optimizer"].build().create(parameters)
    step = Step(run.model, parameters, optimizer, lambda step: 0.0, run.settings.train, run.seed)
    run.model.train()
    layers = divergence.outputs(step, state["failed_step"], batches)
    return StepAgain(
        _("{sentence}; it began with {origin}").format(sentence=state["sentence"], origin=state["origin"]),
        layers,
        list(_texts(run, batches)),
    )


def _table(layers: Sequence[Output]) -> Table[Output]:
    return Table(
        [
            Column("layer", lambda layer: layer.path, lambda layer: {"layer": layer.path}),
            Column("class", lambda layer: layer.kind, lambda layer: {"class": layer.kind}, importance=1),
            Column(
                "largest", lambda layer: f"{layer.largest:.3g}", lambda layer: {"largest": layer.largest}, right=True
            ),
            Column(
                "not finite",
                lambda layer: _("{part} of {whole}").format(part=f"{layer.wrong:,}", whole=f"{layer.size:,}"),
                lambda layer: {"not_finite": layer.wrong, "numbers": layer.size},
                right=True,
            ),
        ],
        layers,
    )


def _texts(run: Run, batches: Sequence[Batch[np.ndarray]]) -> Iterator[str]:
    """What the batches hold: how much, which training examples, and the first sentences of them."""
    rows = sum(len(batch.index) for batch in batches)
    tokens = sum(batch.tokens for batch in batches)
    examples = ", ".join(str(int(number)) for batch in batches for number in batch.index[:TEXTS])
    yield _(
        "The step has {rows:,} sentences and {tokens:,} target tokens; the first are training examples {examples}:"
    ).format(rows=rows, tokens=tokens, examples=examples)
    pieces = run.codec.target_vocabulary.pieces
    for row, valid in zip(batches[0].target_out[:TEXTS], batches[0].target_valid[:TEXTS]):
        words = [pieces[int(number)] if number < len(pieces) else "?" for number in row[valid]]
        yield "  " + " ".join([*words[:PIECES], *(["…"] if len(words) > PIECES else [])])
