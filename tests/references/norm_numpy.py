"""Every norm of the zoo in NumPy, as its paper has it: `plugin check … --reference norm_numpy.py`.

x [B, T, C], valid [B, T], w: name → parameter or running statistic.
"""

import math

import numpy as np
import paper_equations as paper


def layer(x, w, eps):
    return paper.layer_norm(x, w["weight"], w.get("bias"), eps)


def layer_std(x, w, eps):
    """a (x − mean) / (std + ε) + b with the unbiased std, as `LayerNorm` in The Annotated Transformer (Rush 2018)."""
    centred = x - x.mean(-1, keepdims=True)
    return w["weight"] * centred / (np.sqrt((centred**2).sum(-1, keepdims=True) / (x.shape[-1] - 1)) + eps) + w["bias"]


def rms(x, w, eps):
    return paper.rms_norm(x, w["weight"], eps)


def seednorm(x, w, eps):
    """[σ(x βᵀ) α + γ] ⊙ x / RMS(x), σ the hyperbolic tangent: 2510.22777, equation 4."""
    return (np.tanh((x * w["beta"]).sum(-1, keepdims=True)) * w["alpha"] + w["weight"]) * paper.rms_norm(x, 1.0, eps)


def gated(x, w, eps):
    """2601.22966, section 3.4: y' = y ⊙ σ(W_up swish(W_down y)), y = RMSNorm(x)."""
    y = paper.rms_norm(x, w["weight"], eps)
    down = y @ w["down.weight"]
    return y * paper.sigmoid(down * paper.sigmoid(down) @ w["up.weight"])


def scale(x, w, eps):
    """g · x / ‖x‖: 1910.05895 (ScaleNorm); `eps` is the least ‖x‖, as in the authors' released code."""
    length = np.sqrt((x * x).sum(-1, keepdims=True))
    return w["weight"] * x / np.where(length < eps, eps, length)


def group(x, w, eps, groups):
    """γ (x − μ) / sqrt(σ² + ε) + β, μ and σ over the channels of a group: 1803.08494, section 3, the set S_i being
    cut down to the one position."""
    y = np.empty_like(x)
    for part in np.split(np.arange(x.shape[-1]), groups):
        mean = x[..., part].mean(-1, keepdims=True)
        sigma = np.sqrt(((x[..., part] - mean) ** 2).mean(-1, keepdims=True) + eps)
        y[..., part] = w["weight"][part] * (x[..., part] - mean) / sigma + w["bias"][part]
    return y


def dyt(x, w):
    """γ ∗ tanh(α x) + β: 2503.10622, section 4."""
    grown = np.exp(2.0 * w["alpha"] * x)
    return w["weight"] * (grown - 1.0) / (grown + 1.0) + w["bias"]


def derf(x, w):
    """γ erf(α x + s) + β: 2512.10938, equation 10."""
    return w["weight"] * np.vectorize(math.erf)(w["alpha"] * x + w["shift"]) + w["bias"]


def none(x):
    return x


def batch(x, w, valid, eps, training):
    """1502.03167, algorithm 1 over the real tokens of a batch that has two; otherwise algorithm 2, with running
    statistics."""
    mean, variance = w["running_mean"], w["running_variance"]
    if training and valid.sum() > 1:
        mean, variance, _ = paper.batch_statistics(x, valid)
    return paper.batch_norm(x, mean, variance, w["weight"], w["bias"], eps)


def regularized_batch(x, w, valid, eps, training):
    """2210.05153: what it adds to the loss is all that sets it apart."""
    return batch(x, w, valid, eps, training)


def batch_per_position(x, w, valid, eps, training):
    """Statistics for each time step (1603.09025, section 3), over the sentences that have a token there."""
    parts = []
    for t in range(x.shape[1]):
        here = {**w, "running_mean": w["running_mean"][t], "running_variance": w["running_variance"][t]}
        parts.append(batch(x[:, t : t + 1], here, valid[:, t : t + 1], eps, training))
    return np.concatenate(parts, 1)


def power(x, w, eps):
    """γ x / ψ + β with the running ψ² = E[x²]: 2003.07845, in evaluation. Its gradient while training is none of this
    formula's: tests/references/test_norm_papers.py has it by hand."""
    return w["weight"] * x / np.sqrt(w["running_square"] + eps) + w["bias"]
