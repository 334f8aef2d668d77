"""Every head against its paper's equations: probabilities, the loss, and the loss with smoothed labels."""

from itertools import pairwise

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


def capped(h, matrix, bias, cap):
    """2408.00118, section 2: logits ← soft_cap · tanh(logits / soft_cap), before the softmax."""
    logits = h @ matrix + (0.0 if bias is None else bias)
    return np.apply_along_axis(paper.softmax, -1, cap * np.tanh(logits / cap))


def linear(w, case, cap=None):
    parts = case.h, w["output.weight"], w.get("output.bias")
    return paper.linear_head(*parts) if cap is None else capped(*parts, cap)


def tied(w, case, cap=None):
    """1608.05859: the output matrix is the embedding's, U = V."""
    parts = case.h, w["table"].T, w.get("bias")
    return paper.linear_head(*parts) if cap is None else capped(*parts, cap)


def pointer(w, case, coverages=None):
    """Equations 8 and 9 over a^t = softmax of scaled dot products (1706.03762, equation 1) instead of the paper's
    additive scores (its equation 1), and P_vocab from the state alone, for in a Transformer it has looked at the source
    already."""
    p_vocab = paper.linear_head(case.h, w["output.weight"], w.get("output.bias"))
    out = np.empty((*case.h.shape[:2], VOCABULARY + EXTRA))
    gate = w["gate.weight"][:, 0]
    for b, source in enumerate(case.source):
        keys = paper.affine(source, w["key.weight"], w.get("key.bias"))
        for t, state in enumerate(case.h[b]):
            query = paper.affine(state, w["query.weight"], w.get("query.bias"))
            covered = 0.0 if coverages is None else np.outer(sum(coverages[b]), w["coverage.weight"][0])
            attention = paper.softmax((keys + covered) @ query / np.sqrt(D_MODEL), SOURCE_VALID[b])
            if coverages is not None:
                coverages[b].append(attention)
            context = attention @ source  # h*_t, the paper's equation 3
            p_gen = paper.generation_probability(context, state, gate[D_MODEL:], gate[:D_MODEL], w["gate.bias"][0])
            out[b, t] = paper.pointer_distribution(p_vocab[b, t], attention, case.copy_ids[b], p_gen, EXTRA)
    return out


def pointer_coverage(w, case):
    """Equations 10 and 11: c^t is the sum of the attention of all steps before, and a term of the scores; where these
    are dot products, of the keys."""
    return pointer(w, case, [[np.zeros(len(source))] for source in case.source])


def fix(w, case):
    """1710.01329: both vectors of a fixed length r in the softmax of W h + b, so that the logits are r² cos θ + b; r²
    is a trained number here (1910.05895: the last ScaleNorm's g times FixNorm's 1)."""
    table = w["weight"] if "weight" in w else w["table"]
    scale = w["scale"][0] if "scale" in w else 5.0
    out = np.empty((*case.h.shape[:2], VOCABULARY))
    for b, t in np.ndindex(*out.shape[:2]):
        h = case.h[b, t]
        cosines = np.array([h @ row / (np.linalg.norm(h) * max(np.linalg.norm(row), 1e-300)) for row in table])
        out[b, t] = paper.softmax(scale * cosines + w.get("bias", 0.0))
    return out


def adaptive(w, case, cutoffs=(5,)):
    """1609.04309, section 4.2: p(v) of the short list, and p(cluster) · p(v | cluster) over projections of a quarter, a
    sixteenth … of the width for the tail."""
    bounds = [*cutoffs, VOCABULARY]
    first = paper.linear_head(case.h, w["output.weight"], w.get("output.bias"))
    parts = [first[..., : cutoffs[0]]]
    for i, (begin, end) in enumerate(pairwise(bounds)):
        projected = case.h @ w[f"narrow.{i}.weight"]
        inside = paper.linear_head(projected, w[f"rare.{i}.weight"], w.get(f"rare.{i}.bias"))
        assert inside.shape[-1] == end - begin and projected.shape[-1] == max(1, D_MODEL // 4 ** (i + 1))
        parts.append(first[..., cutoffs[0] + i, None] * inside)
    return np.concatenate(parts, -1)


def pointer_network(w, case, output="word"):
    """1506.03134, equation 3: u_j = vᵀ tanh(W_1 e_j + W_2 d), softmax over j. A word has the sum over the places that
    hold it; of positions, the j-th piece is place j, EOS the place of the source's end token. What has none is told as
    1e-30."""
    beyond = EXTRA if output == "word" else 0
    out = np.zeros((*case.h.shape[:2], VOCABULARY + beyond))
    for b, t in np.ndindex(*out.shape[:2]):
        hidden = np.tanh(case.source[b] @ w["memory.weight"] + case.h[b, t] @ w["state.weight"])
        p = paper.softmax((hidden @ w["score.weight"])[:, 0], SOURCE_VALID[b])
        for j in np.flatnonzero(SOURCE_VALID[b]):
            word = case.copy_ids[b, j]
            out[b, t, word if output == "word" or word == EOS else 4 + j] += p[j]
    return np.maximum(out, 1e-30)


REFERENCES = {
    "linear": linear,
    "tied": tied,
    "pointer": pointer,
    "pointer_coverage": pointer_coverage,
    "fix": fix,
    "adaptive": adaptive,
    "pointer_network": pointer_network,
}
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
    """The reference under these options; most of them show in which parameters there are."""
    arguments = {key: value for key, value in options.items() if key in ("cutoffs", "output", "cap")}
    return REFERENCES[name](w, case, **arguments)


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
    p = pointer(w, case, coverages)
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
