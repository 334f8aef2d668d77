"""Whole outputs that are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paddle_tfm.protocols import Likelihood, Metric, Prediction


class ExactMatch(Metric):
    """The share of outputs that equal their reference, spaces at the ends aside."""

    percent: ClassVar[bool] = True

    def compute(self, predictions: Sequence[Prediction], likelihood: Likelihood) -> float:
        if not predictions:
            raise ValueError("`predictions` must hold at least one")
        right = sum(prediction.hypothesis.strip() == prediction.reference.strip() for prediction in predictions)
        return right / len(predictions)
