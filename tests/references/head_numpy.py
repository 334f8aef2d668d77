"""Every head of the zoo in NumPy, as its paper has it: `plugin check … --reference head_numpy.py`.

Log-probabilities of h [B, T, C]. w: name → parameter, `table` [V, C] that of the target embedding. What copies looks at
`source` [B, S, C], whose words are `copy_ids` [B, S] in a vocabulary that has `extra` more, where `source_valid` [B, S].
"""

import math
from itertools import pairwise

import numpy as np
import paper_equations as paper

EOS, SPECIAL = 2, 4  # the source's end token, and how many special tokens there are
# Ours: a word that is neither in the source nor in the vocabulary has log-probability −69, and one that cannot be
# pointed at a probability of 1e-30.
BEYOND, NOWHERE = math.exp(-69.0), 1e-30


def log_linear(h, matrix, bias, cap):
    """2408.00118, section 2: logits ← soft_cap · tanh(logits / soft_cap), before the softmax."""
    if cap is None:
        return np.log(paper.linear_head(h, matrix, bias))
    logits = h @ matrix + (0.0 if bias is None else bias)
    return np.log(np.apply_along_axis(paper.softmax, -1, cap * np.tanh(logits / cap)))


def linear(h, w, cap=None):
    return log_linear(h, w["output.weight"], w.get("output.bias"), cap)


def tied(h, w, table, cap=None):
    """1608.05859: the output matrix is the embedding's, U = V."""
    return log_linear(h, table.T, w.get("bias"), cap)


def copying(h, w, source, source_valid, copy_ids, extra, coverages=None):
    """P(w): equations 8 and 9 of 1704.04368 over a^t = softmax of scaled dot products (1706.03762, equation 1) instead of
    the paper's additive scores (its equation 1), and P_vocab from the state alone, for in a Transformer it has looked at
    the source already. `coverages`: of each sentence the attention of all steps before, to which this adds its own."""
    p_vocab, width = paper.linear_head(h, w["output.weight"], w.get("output.bias")), h.shape[-1]
    out = np.empty((*h.shape[:2], p_vocab.shape[-1] + extra))
    gate = w["gate.weight"][:, 0]
    for b in range(len(h)):
        keys = paper.affine(source[b], w["key.weight"], w.get("key.bias"))
        for t, state in enumerate(h[b]):
            query = paper.affine(state, w["query.weight"], w.get("query.bias"))
            covered = 0.0 if coverages is None else np.outer(sum(coverages[b]), w["coverage.weight"][0])
            attention = paper.softmax((keys + covered) @ query / np.sqrt(width), source_valid[b])
            if coverages is not None:
                coverages[b].append(attention)
            context = attention @ source[b]  # h*_t, the paper's equation 3
            # equation 8 without the decoder's input, which an attentional state already holds
            p_gen = paper.sigmoid(gate[width:] @ context + gate[:width] @ state + w["gate.bias"][0])
            out[b, t] = paper.pointer_distribution(p_vocab[b, t], attention, copy_ids[b], p_gen, extra)
    return out


def pointer(h, w, source, source_valid, copy_ids, extra):
    return np.log(np.maximum(copying(h, w, source, source_valid, copy_ids, extra), BEYOND))


def pointer_coverage(h, w, source, source_valid, copy_ids, extra):
    """Equations 10 and 11: c^t is the sum of the attention of all steps before, and a term of the scores; where these
    are dot products, of the keys."""
    coverages = [[np.zeros(len(text))] for text in source]
    return np.log(np.maximum(copying(h, w, source, source_valid, copy_ids, extra, coverages), BEYOND))


def fix(h, w, table, scale=None):
    """1710.01329: both vectors of a fixed length r in the softmax of W h + b, so that the logits are r² cos θ + b; r²
    is a trained number here (1910.05895: the last ScaleNorm's g times FixNorm's 1)."""
    rows, out = w.get("weight", table), np.empty((*h.shape[:2], len(table)))
    scale = w["scale"][0] if "scale" in w else scale
    for b, t in np.ndindex(*out.shape[:2]):
        one = h[b, t]
        cosines = np.array([one @ row / (np.linalg.norm(one) * max(np.linalg.norm(row), 1e-300)) for row in rows])
        out[b, t] = paper.softmax(scale * cosines + w.get("bias", 0.0))
    return np.log(out)


def adaptive(h, w, vocab_size, cutoffs=None, factor=4):
    """1609.04309, section 4.2: p(v) of the short list, and p(cluster) · p(v | cluster) over projections of a quarter, a
    sixteenth … of the width for the tail. (Ours: by default cut at an eighth, 5 at least, and at half of the vocabulary,
    twice that at least.)"""
    first = max(vocab_size // 8, 5)
    cutoffs = [first, max(vocab_size // 2, 2 * first)] if cutoffs is None else cutoffs
    short = paper.linear_head(h, w["output.weight"], w.get("output.bias"))
    parts = [short[..., : cutoffs[0]]]
    for i, (begin, end) in enumerate(pairwise([*cutoffs, vocab_size])):
        projected = h @ w[f"narrow.{i}.weight"]
        inside = paper.linear_head(projected, w[f"rare.{i}.weight"], w.get(f"rare.{i}.bias"))
        assert inside.shape[-1] == end - begin and projected.shape[-1] == max(1, h.shape[-1] // factor ** (i + 1))
        parts.append(short[..., cutoffs[0] + i, None] * inside)
    return np.log(np.concatenate(parts, -1))


def pointer_network(h, w, source, source_valid, copy_ids, extra, vocab_size, output="word"):
    """1506.03134, equation 3: u_j = vᵀ tanh(W_1 e_j + W_2 d), softmax over j. A word has the sum over the places that
    hold it; of positions, the j-th piece is place j, EOS the place of the source's end token."""
    out = np.zeros((*h.shape[:2], vocab_size + (extra if output == "word" else 0)))
    for b, t in np.ndindex(*out.shape[:2]):
        hidden = np.tanh(source[b] @ w["memory.weight"] + h[b, t] @ w["state.weight"])
        p = paper.softmax((hidden @ w["score.weight"])[:, 0], source_valid[b])
        for j in np.flatnonzero(source_valid[b]):
            word = copy_ids[b, j]
            out[b, t, word if output == "word" or word == EOS else SPECIAL + j] += p[j]
    return np.log(np.maximum(out, NOWHERE))
