"""Whole outputs that are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from paddle_tfm.protocols import Metric, Prediction


class ExactMatch(Metric):
    """The share of outputs that equal their reference, or one of several, spaces at the ends aside.

    The reference is the corpus' own text: what a tokenizer cannot write (capitals, where it folds case) is wrong.
    """

    unit: ClassVar[str] = "%"
    several_references: ClassVar[bool] = True

    def statistics(self, predictions: Sequence[Prediction]) -> np.ndarray:
        pairs = ((each.hypothesis.strip(), [text.strip() for text in each.references]) for each in predictions)
        return np.array([(ours in theirs, 1) for ours, theirs in pairs], dtype=np.float64)

    def value(self, total: np.ndarray) -> float:
        right, outputs = total.tolist()
        return right / outputs
