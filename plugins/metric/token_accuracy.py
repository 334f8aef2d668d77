"""Next tokens that are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paddle_tfm.protocols import Likelihood, Metric, Prediction


class TokenAccuracy(Metric):
    """The share of reference tokens that are the model's most probable ones, under teacher forcing."""

    needs_search: ClassVar[bool] = False
    per_piece: ClassVar[bool] = True
    unit: ClassVar[str] = "%"

    def compute(self, predictions: Sequence[Prediction], likelihood: Likelihood) -> float:
        if not likelihood.tokens > 0:
            raise ValueError(f"`likelihood.tokens` must be positive, but is {likelihood.tokens}")
        return likelihood.correct / likelihood.tokens
