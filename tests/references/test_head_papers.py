"""Every head against its paper's equations: probabilities, the loss, and the loss with smoothed labels."""

import numpy as np
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, LENGTH, SOURCE_VALID

from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import Memory

VOCABULARY, PAD, UNKNOWN, EXTRA = 9, 0, 3, 2


class Case:
    """A decoder's output, targets, and a memory: a source of words, two of which the vocabulary lacks."""

    def __init__(self, rng, precision):
        self.h = rng.normal(size=(3, LENGTH, D_MODEL))
        self.source = rng.normal(size=(3, SOURCE_VALID.shape[1], D_MODEL))
        self.copy_ids = rng.integers(4, VOCABULARY + EXTRA, size=SOURCE_VALID.shape)
        self.copy_ids[1, :4] = 5, VOCABULARY, 5, VOCABULARY + 1  # a word twice, and both unknown ones
        self.copy_ids[~SOURCE_VALID] = PAD
        self.target = rng.integers(1, VOCABULARY, size=(3, LENGTH))
        where = precision.tensor(np.arange(SOURCE_VALID.shape[1])[None])
        tensors = (precision.tensor(array) for array in (SOURCE_VALID, self.copy_ids))
        self.memory = Memory(precision.tensor(self.source), where, *tensors, EXTRA)


def linear(w, case):
    return paper.linear_head(case.h, w["output.weight"], w.get("output.bias"))


def tied(w, case):
    """1608.05859: the output matrix is the embedding's, U = V."""
    return paper.linear_head(case.h, w["table"].T, w.get("bias"))


def pointer(w, case):
    """Equations 8 and 9 over a^t = softmax of scaled dot products (1706.03762, equation 1) instead of the paper's additive
    scores (its equation 1), and P_vocab from the state alone, for in a Transformer it has looked at the source already."""
    p_vocab = paper.linear_head(case.h, w["output.weight"], w.get("output.bias"))
    out = np.empty((*case.h.shape[:2], VOCABULARY + EXTRA))
    gate = w["gate.weight"][:, 0]
    for b, source in enumerate(case.source):
        keys = paper.affine(source, w["key.weight"], w.get("key.bias"))
        for t, state in enumerate(case.h[b]):
            query = paper.affine(state, w["query.weight"], w.get("query.bias"))
            attention = paper.softmax(keys @ query / np.sqrt(D_MODEL), SOURCE_VALID[b])
            context = attention @ source  # h*_t, the paper's equation 3
            p_gen = paper.generation_probability(context, state, gate[D_MODEL:], gate[:D_MODEL], w["gate.bias"][0])
            out[b, t] = paper.pointer_distribution(p_vocab[b, t], attention, case.copy_ids[b], p_gen, EXTRA)
    return out


REFERENCES = {"linear": linear, "tied": tied, "pointer": pointer}
each_head = pytest.mark.parametrize(
    "name, precision",
    [("linear", "float64"), ("linear", "float32"), ("tied", "float64"), ("tied", "float32"), ("pointer", "float32")],
    indirect=["precision"],  # the pointer head computes in float32 whatever it is given
)


@pytest.fixture
def make(build, precision, rng):
    def head(name, **options):
        embedding = Embedding(VOCABULARY, D_MODEL, PAD, UNKNOWN)
        table = rng.normal(scale=0.5, size=(VOCABULARY, D_MODEL))
        embedding.weight.set_value(precision.tensor(table))
        given = {"d_model": D_MODEL, "vocab_size": VOCABULARY, "unknown_id": UNKNOWN, "pad_id": PAD}
        component, w = build("head", {"name": name, **options}, **given, embedding=embedding)
        component.eval()
        return component, {**w, "table": embedding.weight.numpy().astype(np.float64)}, Case(rng, precision)

    return head


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@each_head
def test_probabilities_are_the_papers(make, precision, name, bias):
    head, w, case = make(name, bias=bias)
    ours = head.log_probs(precision.tensor(case.h), case.memory)
    expected = REFERENCES[name](w, case)
    np.testing.assert_allclose(expected.sum(-1), 1, rtol=1e-12)
    assert ours.shape == [*expected.shape]
    possible = expected > 0  # a word that is not in the source, and not in the vocabulary, is impossible
    precision.same(np.exp(ours.numpy()[possible]), expected[possible])
    assert (ours.numpy()[~possible] < -20).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@each_head
def test_loss_is_the_papers(make, precision, name, smoothing):
    head, w, case = make(name)
    target = case.target.copy()
    if head.extends_vocabulary:
        target[1, :2] = VOCABULARY, VOCABULARY + 1  # words that can only be copied
    ours = head.loss(precision.tensor(case.h), precision.tensor(target), case.memory, smoothing).numpy()
    p = REFERENCES[name](w, case)
    expected = np.array(
        [
            [paper.smoothed_cross_entropy(p[b, t], target[b, t], smoothing, PAD, VOCABULARY) for t in range(LENGTH)]
            for b in range(len(target))
        ]
    )
    precision.same(ours, expected)


def test_label_smoothing_worked_by_hand():
    """Four tokens, one of them padding: 0.9 + 0.1/3 on the target, 0.1/3 on the two others."""
    p = np.array([0.1, 0.5, 0.25, 0.15])
    by_hand = -((0.9 + 0.1 / 3) * np.log(0.5) + 0.1 / 3 * (np.log(0.25) + np.log(0.15)))
    assert paper.smoothed_cross_entropy(p, 1, 0.1, 0) == pytest.approx(by_hand)
