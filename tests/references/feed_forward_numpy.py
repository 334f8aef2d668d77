"""Every feed-forward network of the zoo in NumPy, as its paper has it: `plugin check … --reference feed_forward_numpy.py`.

x [B, T, C], w: name → parameter.
"""

import numpy as np
import paper_equations as paper
from paper_equations import feed_forward_relu as relu
from paper_equations import feed_forward_swiglu as swiglu

__all__ = ["relu", "swiglu"]


def two_layers(x, w, activation):
    y = activation(paper.affine(x, w["inner.weight"], w.get("inner.bias")))
    return paper.affine(y, w["output.weight"], w.get("output.bias"))


def gelu(x, w):
    """GELU(x) = x Φ(x), 1606.08415, section 2 (the exact one), between two matrices."""
    return two_layers(x, w, lambda y: y * paper.normal_cdf(y))


def gated(x, w, activation):
    """(activation(x W) ⊗ x V) W2: 2002.05202, section 2, whose equations have no biases."""
    y = activation(paper.affine(x, w["gate.weight"], w.get("gate.bias")))
    y = y * paper.affine(x, w["up.weight"], w.get("up.bias"))
    return paper.affine(y, w["output.weight"], w.get("output.bias"))


def geglu(x, w):
    """(GELU(x W) ⊗ x V) W2 with GELU(x) = x Φ(x): 2002.05202, equation 6."""
    return gated(x, w, lambda y: y * paper.normal_cdf(y))


def reglu(x, w):
    """(max(0, x W) ⊗ x V) W2: 2002.05202, equation 6."""
    return gated(x, w, lambda y: np.maximum(0, y))


def swish(x, w, beta=1.0):
    """x σ(βx) between two matrices: 1710.05941, section 4."""
    return two_layers(x, w, lambda y: y * paper.sigmoid(beta * y))


def relu_squared(x, w):
    """max(0, x W1)² W2: 2109.08668, squared ReLU in the Transformer's feed-forward block."""
    return two_layers(x, w, lambda y: np.maximum(0, y) ** 2)


# One expert: the gate is the Switch Transformer's p_i, through which the router learns; 1701.06538's would always be 1.
GATES = {1: paper.gates_switch}


def mixture_of_experts(x, w, experts, top_k):
    """1701.06538, equation 1; for one expert a token 2101.03961, equation 2. Without the noise of training."""
    gates = GATES.get(top_k, paper.gates_shazeer)
    return paper.mixture_of_experts(x.reshape(-1, x.shape[-1]), w, top_k, experts, gates).reshape(x.shape)


def canon_layer(h, w, name="canon.weight"):
    """2512.17351: h'_t = h_t + w_0 ⊙ h_t + w_1 ⊙ h_{t−1} + w_2 ⊙ h_{t−2} + w_3 ⊙ h_{t−3}, nothing before the first token."""
    mixed = h.copy()
    for t in range(h.shape[1]):
        for j in range(min(t + 1, len(w[name]))):
            mixed[:, t] += w[name][j] * h[:, t - j]
    return mixed


def canon(x, w):
    """Canon-C: the layer, and then the sublayer as it was (`inner`: relu)."""
    return relu(canon_layer(x, w), part(w, "inner."))


def token_shift(x, w):
    """2305.13048, channel mixing: r'_t = W'_r (μ'_r ⊙ x_t + (1 − μ'_r) ⊙ x_{t−1}), k'_t likewise, and o'_t = σ(r'_t) ⊙
    (W'_v max(k'_t, 0)²)."""
    past = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1)
    r = (w["mix_receptance"] * x + (1 - w["mix_receptance"]) * past) @ w["receptance.weight"]
    k = (w["mix_key"] * x + (1 - w["mix_key"]) * past) @ w["key.weight"]
    return paper.sigmoid(r) * (np.maximum(k, 0) ** 2 @ w["value.weight"])


def part(w, prefix):
    return {name.removeprefix(prefix): array for name, array in w.items() if name.startswith(prefix)}


def sparse_experts(x, w, top_k, b):
    """2412.19437, equations 12 to 16: h' = Σ FFN(s)(u) + Σ g_i FFN(r)(u), g' = s where s + b is among the K highest, else
    0, g = g' / Σ g', s = Sigmoid(u · e). (Ours: for K = 1, where that is 1, g = s.) Tokens x [N, C], one at a time. Also
    how many tokens selected each."""
    s, out, load = paper.sigmoid(x @ w["router.weight"]), np.zeros_like(x), np.zeros(len(b))
    for t, token in enumerate(x):
        chosen = sorted(range(len(b)), key=lambda i: s[t, i] + b[i])[-top_k:]
        for i in chosen:
            gate = s[t, i] / sum(s[t, j] for j in chosen) if top_k > 1 else s[t, i]
            out[t] += gate * paper.feed_forward_swiglu(token, part(w, f"experts.{i}."))
            load[i] += 1
        if any(name.startswith("shared.") for name in w):
            out[t] += paper.feed_forward_swiglu(token, part(w, "shared."))
    return out, load


def deepseek_moe(x, w, top_k):
    """The bias b as training left it."""
    return sparse_experts(x.reshape(-1, x.shape[-1]), w, top_k, w["balance"])[0].reshape(x.shape)
