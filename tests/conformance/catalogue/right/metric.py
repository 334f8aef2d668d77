"""The share of outputs that are the reference: the twin of mutants of a metric."""

import numpy as np

from paddle_tfm.protocols import Metric


class Twin(Metric):
    higher_is_better = True

    def statistics(self, predictions):
        return np.array([[float(p.hypothesis == p.reference), 1.0] for p in predictions])

    def value(self, total):
        return float(total[0] / total[1])
