"""Perplexity of the references under teacher forcing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from paddle_tfm.protocols import Likelihood, Metric, Prediction

LARGEST_LOSS = 300


class Perplexity(Metric):
    """exp of the mean negative log-likelihood of a reference token, under teacher forcing: the number of equally likely
    tokens that would be as hard to predict. Beyond e^300 it is infinite."""

    higher_is_better: ClassVar[bool] = False
    needs_search: ClassVar[bool] = False
    per_piece: ClassVar[bool] = True

    def compute(self, predictions: Sequence[Prediction], likelihood: Likelihood) -> float:
        if not likelihood.tokens > 0:
            raise ValueError(f"`likelihood.tokens` must be positive, but is {likelihood.tokens}")
        mean = likelihood.negative_log / likelihood.tokens
        return math.inf if mean > LARGEST_LOSS else math.exp(mean)
