"""A model of another toolkit, as a recipe and arrays of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from paddle_tfm.errors import UserError
from paddle_tfm.files import content
from paddle_tfm.language import _

# The logit of padding and begin, which other toolkits do not have: float32's exp of it is 0 beside any other logit.
IMPOSSIBLE = -300.0


class Side(NamedTuple):
    """The pieces of a side by their ids there, which of these is the end, which is unknown, and which, if there is one,
    is padding and which the begin alone; and the content of its SentencePiece model, None: its texts come cut."""

    pieces: Sequence[str]
    end: int
    unknown: int
    sentencepiece: bytes | None
    padding: int | None = None
    begin: int | None = None

    def order(self) -> list[int]:
        """The ids there of our pieces from `vocabulary.EOS` on: end, unknown, and all others in their order."""
        special = (self.padding, self.begin, self.end, self.unknown)
        return [self.end, self.unknown, *(i for i in range(len(self.pieces)) if i not in special)]

    def own_pieces(self) -> list[str]:
        """What our vocabulary holds beside the special pieces."""
        return [self.pieces[i] for i in self.order()[2:]]

    def rows(self, table: np.ndarray, first: float = 0.0) -> np.ndarray:
        """Rows by their ids there → by ours; those of padding and begin are `first` where there are no such pieces."""
        special = np.full_like(table[:2], first)
        for row, i in enumerate((self.padding, self.begin)):
            if i is not None:
                special[row] = table[i]
        return np.concatenate([special, table[self.order()]])


@dataclass
class Foreign:
    """A model of another toolkit.

    Args:
        origin: what it was made by, and of which files, for people.
        recipe: the sections that describe it, `model`, `search` and `evaluate`.
        arrays: by the names of our model's parameters.
        sides: "source" and "target". shared: whether both have one vocabulary.
        remarks: what is not as the files ask for.
    """

    origin: dict[str, str]
    recipe: dict[str, Any]
    arrays: dict[str, np.ndarray]
    sides: Mapping[str, Side]
    shared: bool
    remarks: list[str] = field(default_factory=list)


class Weights:
    """The matrices of a file by name, which are taken one after another."""

    def __init__(self, file: Path, arrays: Mapping[str, np.ndarray]):
        self.file, self.arrays, self.left = file, arrays, set(arrays)

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def take(self, name: str, *shape: int) -> np.ndarray:
        """The matrix of a name, as float32; a single row where `shape` is of a vector.

        Raises:
            UserError: it is not there, or of another shape.
        """
        if name not in self.arrays:
            raise UserError(
                _("{file}: there is no matrix {name}, which the model needs").format(file=self.file, name=name)
            )
        self.left.discard(name)
        array = self.arrays[name]
        if len(shape) == 1 and array.ndim == 2 and array.shape[0] == 1:
            array = array[0]
        if array.shape != shape:
            sentence = f"{self.file}: {name} must have the shape {[*shape]}, but has {[*self.arrays[name].shape]}"
            raise UserError(sentence)
        if array.dtype.kind != "f":
            sentence = f"{self.file}: {name} must hold floating-point numbers, but holds {array.dtype.name}"
            raise UserError(sentence)
        return np.ascontiguousarray(array, np.float32)

    def require_all_taken(self) -> None:
        """Raises UserError where a matrix is left, with which nothing here would compute."""
        if self.left:
            sentence = f"{len(self.left)} of its matrices belong to no part of the model that is known here"
            raise UserError(f"{self.file}: {sentence}, such as {min(self.left)}")


def sentencepiece_of(file: Path) -> sentencepiece.SentencePieceProcessor:
    """The SentencePiece model of a file.

    Raises:
        UserError: it cannot be read, or is none.
    """
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=content(file))
    except OSError as error:
        raise UserError(_("{path}: cannot be read: {why}").format(path=file, why=error.strerror)) from error
    except RuntimeError as error:
        raise UserError(f"{file}: no SentencePiece model") from error
