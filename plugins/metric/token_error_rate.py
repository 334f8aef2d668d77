"""Edits from the output's pieces to the reference's."""

from __future__ import annotations

from typing import ClassVar

from paddle_tfm.protocols import Prediction
from paddle_tfm_plugins.metric._edits import ErrorRate, Items


class TokenErrorRate(ErrorRate):
    """Insertions, deletions and substitutions of pieces that mend the outputs, per piece of the references.

    Pieces are the tokenizer's: another tokenizer gives another number (`word_error_rate` does not depend on it). It may
    exceed 1.
    """

    needs_pieces: ClassVar[bool] = True
    per_piece: ClassVar[bool] = True
    item: ClassVar[str] = "piece"

    def items(self, prediction: Prediction) -> tuple[Items, Items]:
        return prediction.hypothesis_pieces, prediction.reference_pieces
