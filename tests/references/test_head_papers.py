"""Every head against its paper's equations: probabilities, the loss, and the loss with smoothed labels."""

import head_numpy as twins
import numpy as np
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, LENGTH, SOURCE_VALID, with_known

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


SETTINGS = {
    "linear": [{}, {"bias": False}, {"cap": 1.5}],
    "tied": [{}, {"bias": True}, {"bias": True, "cap": 0.5}],
    "pointer": [{}, {"bias": False}],
    "pointer_coverage": [{"coverage_weight": 0.0}, {"bias": False, "coverage_weight": 0.0}],
    "fix": [{}, {"bias": True}, {"tied": True}, {"scale": 5.0, "learned": False}],
    "adaptive": [{}, {"bias": True}, {"cutoffs": [2, 4, 7]}, {"cutoffs": [3, 6], "bias": True}],
    "pointer_network": [{}, {"output": "position"}],
}
each_head = pytest.mark.parametrize(
    "name, options, precision",
    [
        (name, options, precision)
        for name, settings in SETTINGS.items()
        for options in settings
        for precision in (
            ["float32"] if name.startswith("pointer") and name != "pointer_network" else ["float64", "float32"]
        )  # those compute in float32
    ],
    indirect=["precision"],
    ids=str,
)


def probabilities(name, options, w, case):
    """exp of the twin under these options; most of them show in which parameters there are."""
    known = {"cutoffs": [5], **options, **case.facts(), "w": w, "table": w["table"]}
    return np.exp(with_known(getattr(twins, name), known)())


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


@each_head
def test_probabilities_are_the_papers(make, precision, name, options):
    head, w, case = make(name, **options)
    ours = head.log_probs(precision.tensor(case.h), case.memory)
    expected = probabilities(name, options, w, case)
    np.testing.assert_allclose(expected.sum(-1), 1, rtol=1e-12)
    assert ours.shape == [*expected.shape]
    possible = expected > 1e-29  # a word that is not in the source, and not in the vocabulary, is impossible
    precision.same(np.exp(ours.numpy()[possible]), expected[possible])
    assert (ours.numpy()[~possible] < -20).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@each_head
def test_loss_is_the_papers(make, precision, name, options, smoothing):
    head, w, case = make(name, **options)
    target = case.target.copy()
    if head.extends_vocabulary:
        target[1, :2] = VOCABULARY, VOCABULARY + 1  # words that can only be copied
    ours = head.loss(precision.tensor(case.h), precision.tensor(target), case.memory, smoothing).numpy()
    p = probabilities(name, options, w, case)
    expected = np.array(
        [
            [paper.smoothed_cross_entropy(p[b, t], target[b, t], smoothing, PAD, VOCABULARY) for t in range(LENGTH)]
            for b in range(len(target))
        ]
    )
    precision.same(ours, expected)


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


def test_label_smoothing_worked_by_hand():
    """Four tokens, one of them padding: 0.9 + 0.1/3 on the target, 0.1/3 on the two others."""
    p = np.array([0.1, 0.5, 0.25, 0.15])
    by_hand = -((0.9 + 0.1 / 3) * np.log(0.5) + 0.1 / 3 * (np.log(0.25) + np.log(0.15)))
    assert paper.smoothed_cross_entropy(p, 1, 0.1, 0) == pytest.approx(by_hand)
