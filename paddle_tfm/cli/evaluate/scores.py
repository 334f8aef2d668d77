"""What `paddle-tfm evaluate` prints and writes: scores as tables, JSON and CSV, and predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_tfm.cli.common import check_output, console, warn
from paddle_tfm.cli.tables import print_table
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.tabular import ESSENTIAL, Column, Table, column

QUARTERS = "quarters"
MAX_LENGTH = 1_000_000_000  # of a text, the end of a bucket

if TYPE_CHECKING:
    from rich.console import Console

    from paddle_tfm.protocols import Metric, Prediction


def write_beside(file: Path, predictions: Sequence[Prediction], printer: Console) -> str | None:
    """Write predictions, and say where; None where that fails: a run that cannot be written to is scored all the
    same."""
    from paddle_tfm.predictions import write_predictions

    try:
        write_predictions(file, predictions)
    except OSError as error:
        text = _("{file}: predictions are not written: {why}; --out FILE writes them elsewhere")
        warn(text.format(file=file, why=error.strerror))
        return None
    printer.print(f"{_('predictions')}  {file}", markup=False, soft_wrap=True)
    return str(file)


def show(results: Mapping[str, Any], metrics: Mapping[str, Metric]) -> None:
    """The scores of all examples, and those of each bucket."""
    from rich.markup import escape

    from paddle_tfm import units

    text = _("{run} on {examples} {split} examples")
    text = text.format(run=results["run"], examples=f"{results['examples']:,}", split=_(results["split"]))
    if results["hypotheses"]:
        text = _("{scored} in {file}").format(scored=text, file=results["hypotheses"])
    console().print(escape(text), soft_wrap=True)
    rows = [
        {"metric": units.metric_name(name), "value": units.text(value, _unit(name, metrics))}
        for name, value in results["metrics"].items()
    ]
    print_table(Table([column("metric", style="cyan"), column("value", right=True)], rows))
    for sentence in results["caveats"]:
        console().print(f"[yellow]{escape(sentence)}[/]")
    if "drift" in results:
        text = _("{changed} of {examples} outputs changed, log-probabilities by up to {drift} nats")
        numbers = {
            name: f"{results[key]:,}" for name, key in (("changed", "changed_outputs"), ("examples", "examples"))
        }
        console().print(text.format(**numbers, drift=f"{results['drift']:.2g}"), markup=False)
    for name, signature in results["signatures"].items():
        console().print(escape(f"{units.metric_name(name)}  {signature}"))
    if results["buckets"]:
        print_table(table(results, metrics), _("in --json and --csv"))


def table(results: Mapping[str, Any], metrics: Mapping[str, Metric]) -> Table:
    """A row a bucket, after one of all examples; the first metric stays the longest."""
    from paddle_tfm import units

    lengths = results["buckets"] or {"by": "length", "unit": "", "rows": []}
    rows = [{"length": "all", "examples": results["examples"], "metrics": results["metrics"]}, *lengths["rows"]]

    def metric(name: str, importance: int) -> Column[dict]:
        return Column(
            units.metric_name(name),
            lambda row: units.text(row["metrics"].get(name), _unit(name, metrics)),
            lambda row: {name: row["metrics"].get(name)},
            importance,
            right=True,
        )

    heading = f"{lengths['by']} {lengths['unit']}".strip()
    columns: list[Column[dict]] = [
        Column(heading, lambda row: row["length"], lambda row: {"length": row["length"]}),
        Column(
            "examples", lambda row: f"{row['examples']:,}", lambda row: {"examples": row["examples"]}, ESSENTIAL, True
        ),
        *(metric(name, ESSENTIAL - i) for i, name in enumerate(results["metrics"])),
    ]
    return Table(columns, rows)


def _unit(name: str, metrics: Mapping[str, Metric]) -> str:
    """The unit of a metric; the loss is a plain number."""
    return metrics[name].unit if name in metrics else ""


def edges(buckets: str | None) -> list[int] | None:
    """The ends of the buckets that `--buckets` names; none: quarters."""
    from paddle_tfm import units

    if buckets in (None, QUARTERS):
        return None if buckets is None else []
    ends = [units.whole_number(part.strip(), 1, MAX_LENGTH) or 0 for part in buckets.split(",")]
    if ends != sorted(set(ends)) or ends[0] < 1:
        text = _("--buckets {buckets}: must be ascending lengths such as 5,10,15, or nothing for four of like size")
        raise UserError(text.format(buckets=buckets))
    return ends


def by_length(predictions: Sequence[Prediction], by: str, edges: Sequence[int], scored: Callable) -> dict:
    """Scores in buckets of texts of about one length: those of the side `by`, up to each of the edges."""
    from paddle_tfm.text_lengths import buckets, equal_edges, lengths

    unit, sizes = lengths([item.source if by == "source" else item.reference for item in predictions])
    rows = buckets(sizes, edges or equal_edges(sizes, 4))
    table = [
        {"length": name, "examples": len(indices), "metrics": scored(indices) if indices else {}}
        for name, indices in rows.items()
    ]
    return {"by": by, "unit": unit, "rows": table}


@dataclass(frozen=True)
class Request:
    """The argument and the options of `evaluate`, by their names; its help says what each means."""

    run: Path
    split: str | None
    test: str | None
    search: str | None
    checkpoint: str
    hypotheses: Path | None
    buckets: str | None
    out: Path | None
    form: str | None

    def require_sound(self) -> None:
        """Raises UserError where options contradict each other, or a file cannot be written."""
        if self.out is not None:
            check_output(str(self.out), None, "--out")
        if self.out is not None and self.hypotheses:
            raise UserError(_("--out is the file for predictions, but --hypotheses provides them: use one of the two"))
        edges(self.buckets)
        if self.hypotheses and self.search:
            raise UserError(
                _("--search decodes with the run, but --hypotheses provides the outputs: use one of the two")
            )

    def require_no_source(self, folder: Path) -> None:
        """Raises UserError where an option needs a source, which the model of the run in `folder` does not read."""
        if self.search:
            text = _("--search needs a model that reads a source, but {folder} is decoder-only; leave it out")
            raise UserError(text.format(folder=folder))

    @property
    def edges(self) -> list[int] | None:
        """The ends of the buckets; empty: four of like size; None: no buckets. Raises UserError: these are none."""
        return edges(self.buckets)
