"""The loss of coverage, and label smoothing by hand."""

import head_numpy as twins
import numpy as np
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, LENGTH, SOURCE_VALID

from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import Memory

VOCABULARY, PAD, EOS, UNKNOWN, EXTRA = 9, 0, 2, 3, 2


class Case:
    """A decoder's output, targets, and a memory: a source of words, two of which the vocabulary lacks."""

    def __init__(self, rng, precision):
        self.h = rng.normal(size=(3, LENGTH, D_MODEL))
        self.source = rng.normal(size=(3, SOURCE_VALID.shape[1], D_MODEL))
        self.copy_ids = rng.integers(4, VOCABULARY + EXTRA, size=SOURCE_VALID.shape)
        self.copy_ids[1, :4] = 5, VOCABULARY, 5, VOCABULARY + 1  # a word twice, and both unknown ones
        self.copy_ids[0, 2] = EOS  # where the first source ends; the others are cut
        self.copy_ids[~SOURCE_VALID] = PAD
        self.target = rng.integers(1, VOCABULARY, size=(3, LENGTH))
        where = precision.tensor(np.arange(SOURCE_VALID.shape[1])[None])
        tensors = (precision.tensor(array) for array in (SOURCE_VALID, self.copy_ids))
        self.memory = Memory(precision.tensor(self.source), where, *tensors, EXTRA)

    def facts(self):
        """By the names that a reference asks for."""
        seen = {"source": self.source, "source_valid": SOURCE_VALID, "copy_ids": self.copy_ids, "extra": EXTRA}
        return {"h": self.h, "vocab_size": VOCABULARY, **seen}


@pytest.fixture
def make(build, precision, rng):
    def head(name, **options):
        embedding = Embedding(VOCABULARY, D_MODEL, PAD, UNKNOWN)
        table = rng.normal(scale=0.5, size=(VOCABULARY, D_MODEL))
        table[PAD] = 0.0  # as the engine makes it
        embedding.weight.set_value(precision.tensor(table))
        givens = {"d_model": D_MODEL, "vocab_size": VOCABULARY, "unknown_id": UNKNOWN, "pad_id": PAD}
        component, w = build("head", {"name": name, **options}, **givens, embedding=embedding)
        component.eval()
        return component, {**w, "table": embedding.weight.numpy().astype(np.float64)}, Case(rng, precision)

    return head


@pytest.mark.parametrize("precision", ["float32"], indirect=True)
@pytest.mark.parametrize("options", [{}, {"coverage_weight": 0.3}], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_coverage_loss_is_the_papers(make, precision, options, smoothing):
    """Equations 12 and 13: λ Σ_i min(a_i^t, c_i^t) of each token, λ = 1, added to its −log P."""
    head, w, case = make("pointer_coverage", **options)
    coverages = [[np.zeros(len(source))] for source in case.source]
    p = twins.copying(case.h, w, case.source, SOURCE_VALID, case.copy_ids, EXTRA, coverages)
    ours = head.loss(precision.tensor(case.h), precision.tensor(case.target), case.memory, smoothing).numpy()
    expected = np.empty(ours.shape)
    for b, t in np.ndindex(*ours.shape):
        repeated = np.minimum(coverages[b][t + 1], sum(coverages[b][: t + 1])).sum()
        likelihood = paper.smoothed_cross_entropy(p[b, t], case.target[b, t], smoothing, PAD, VOCABULARY)
        expected[b, t] = likelihood + options.get("coverage_weight", 1.0) * repeated
    precision.same(ours, expected)
