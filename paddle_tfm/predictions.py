"""`predictions.tsv`: what a run writes for each example of a split. Written and read here alone."""

from __future__ import annotations

import io
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from paddle_tfm.errors import UserError
from paddle_tfm.files import opened, write_whole
from paddle_tfm.language import _
from paddle_tfm.protocols import Prediction
from paddle_tfm.units import AT

Key = TypeVar("Key", bound=Hashable)
COLUMNS = ("right", "source", "reference", "hypothesis", "score")  # then those of other references, if there are any


def predictions_file(folder: Path, split: str | None = None, test: str = "") -> Path:
    """Where a run's predictions are: those of its end, of its own test or of a further `test`; or those that were
    written of a `split` afterwards."""
    name = "predictions" if split is None else f"predictions-{split}"
    return folder / f"{name}{AT if test else ''}{test}.tsv"


def squeezed(text: str) -> str:
    """Runs of white space as one space, none at the ends: how texts are compared and written."""
    return " ".join(text.split())


def is_right(prediction: Prediction) -> bool:
    """Whether the hypothesis is the reference, or one of several, as texts are compared."""
    return squeezed(prediction.hypothesis) in map(squeezed, prediction.references)


def write_predictions(path: Path, predictions: Sequence[Prediction]) -> None:
    """A tab-separated table: right (yes or no), source, reference, hypothesis, score, and `reference 2` and so on where
    texts have several. White space in a text is one space."""
    lines = ["\t".join((*COLUMNS, *_others(len(predictions[0].others) if predictions else 0)))]
    for item in predictions:
        source, reference, hypothesis, *others = map(
            squeezed, (item.source, item.reference, item.hypothesis, *item.others)
        )
        right = "yes" if is_right(item) else "no"
        lines.append("\t".join((right, source, reference, hypothesis, f"{item.score:.4f}", *others)))
    write_whole(path, "\n".join(lines) + "\n")


def predictions_of(folder: Path, test: str = "") -> list[Prediction]:
    """What the run in a folder wrote at its end, for its own test or a further one; nothing where no file is here.
    Raises: as `read_predictions`."""
    path = predictions_file(folder, test=test)
    return read_predictions(path) if path.is_file() else []


def read_predictions(path: Path) -> list[Prediction]:
    """All predictions of a file, without pieces.

    Raises:
        UserError: it is missing or damaged; with path and line.
    """
    try:
        head, *lines = _text(path).removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(_("{path}: no predictions can be read here: {error}").format(path=path, error=error)) from error
    columns = tuple(head.split("\t"))
    if columns != (*COLUMNS, *_others(len(columns) - len(COLUMNS))):
        raise UserError(_("{path}: must be a table of {names}").format(path=path, names=", ".join(COLUMNS)))
    predictions = []
    for number, line in enumerate(lines, 2):
        try:
            _right, source, reference, hypothesis, score, *others = line.split("\t")
            if len(others) != len(columns) - len(COLUMNS):
                raise ValueError(line)
            predictions.append(Prediction(source, reference, hypothesis, score=float(score), others=tuple(others)))
        except ValueError as error:
            text = _("{path}:{number}: must hold {names}, tabs between them")
            raise UserError(text.format(path=path, number=number, names=", ".join(columns))) from error
    return predictions


def of_same_texts(runs: Mapping[Key, Sequence[Prediction]]) -> dict[Key, Sequence[Prediction]]:
    """Of runs that wrote something, those whose predictions are of the first one's texts, in the same order."""
    texts = {key: [(item.source, item.references) for item in rows] for key, rows in runs.items() if rows}
    first = next(iter(texts.values()), [])
    return {key: runs[key] for key, of_run in texts.items() if of_run == first}


def _text(path: Path) -> str:
    with io.TextIOWrapper(opened(path), "utf-8") as file:
        return file.read()


def _others(number: int) -> list[str]:
    return [f"reference {i}" for i in range(2, number + 2)]
