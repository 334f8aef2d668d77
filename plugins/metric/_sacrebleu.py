"""What the scores of sacreBLEU share: the numbers that papers print (Post 2018, arXiv:1804.08771)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sacrebleu.metrics.base import Metric as Scorer

from paddle_tfm.protocols import Metric, Prediction


class SacreBLEU(Metric):
    """A score of detokenized texts against the corpus' own, from 0 to 100; a subclass makes the `scorer`."""

    unit: ClassVar[str] = "points"
    several_references: ClassVar[bool] = True

    def __init__(self, scorer: Scorer):
        self.scorer = scorer

    def statistics(self, predictions: Sequence[Prediction]) -> np.ndarray:
        hypotheses = [prediction.hypothesis for prediction in predictions]
        references = [*zip(*(prediction.references for prediction in predictions), strict=True)]
        return np.array(self.scorer._extract_corpus_statistics(hypotheses, references), dtype=np.float64)

    def value(self, total: np.ndarray) -> float:
        return self.scorer._compute_score_from_stats(total.tolist()).score

    def signature(self, references: int = 1) -> str:
        self.scorer.num_refs = references  # sacreBLEU itself knows after a scoring only, and then of that one
        return self.scorer.get_signature().format()
