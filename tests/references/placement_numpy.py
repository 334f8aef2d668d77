"""Every placement of the zoo in NumPy, as its paper has it: `plugin check … --reference placement_numpy.py`.

One layer: x [B, T, C] and its sublayers, functions of x. `norm` normalizes a token; `named`, if there is one, gives each
norm by its name in the layer instead, norms.0, norms.1 …. w: name → parameter. `layer` of `layers` counts from 0.
"""

import math

import numpy as np
import paper_equations as paper


def norms_of(sublayers, norm, named):
    """The norm of each sublayer, and a function that gives any by its name."""
    named = (lambda name: norm) if named is None else named
    return [named(f"norms.{i}") for i in range(len(sublayers))], named


def post(x, sublayers, norm=None, named=None):
    """x ← n(x + f(x)): 1706.03762, section 3.1; 2002.04745, table 1, left."""
    for f, n in zip(sublayers, norms_of(sublayers, norm, named)[0]):
        x = n(x + f(x))
    return x


def pre(x, sublayers, norm=None, named=None):
    return paper.pre_norm(x, sublayers, norms_of(sublayers, norm, named)[0])


def res_post(x, sublayers, norm=None, named=None):
    """x ← x + n(f(x)): 2111.09883, section 3.2, "the output of each residual block is normalized before merging back"."""
    for f, n in zip(sublayers, norms_of(sublayers, norm, named)[0]):
        x = x + n(f(x))
    return x


def steps(x, sublayers, before="", after="dan", norm=None, named=None):
    """Marian's --transformer-preprocess and -postprocess, marian-dev/src/models/transformer.h: n a norm, a what the
    sublayer was given, d dropout."""
    norms, named = norms_of(sublayers, norm, named)
    for i, f in enumerate(sublayers):
        y = x
        for letter in before:
            y = named(f"before_norms.{i}")(y) if letter == "n" else y
        y = f(y)
        for letter in after:
            y = norms[i](y) if letter == "n" else y + x if letter == "a" else y
        x = y
    return x


def parallel(x, sublayers, norm=None, named=None):
    """y = x + MLP(LN(x)) + Attention(LN(x)): 2204.02311, section 2 (Parallel Layers), one LN for all branches."""
    y = norms_of(sublayers[:1], norm, named)[0][0](x)
    return x + sum(f(y) for f in sublayers)


def sub_ln(x, sublayers, norm=None, named=None):
    """What sets it apart from pre-norm, 2210.06423, stands inside the branches."""
    return pre(x, sublayers, norm, named)


def admin(x, sublayers, w, norm=None, named=None):
    """x ← n(ω_i x + f_i(x)): 2004.08249, section 4, Admin's reparametrization of Post-LN."""
    for i, (f, n) in enumerate(zip(sublayers, norms_of(sublayers, norm, named)[0])):
        x = n(w[f"omegas.{i}"] * x + f(x))
    return x


def sandwich(x, sublayers, norm=None, named=None):
    """x ← x + LN(f(LN(x))): 2105.13290, Sandwich-LN, pre-norm with one more LN at the end of each residual branch."""
    norms, named = norms_of(sublayers, norm, named)
    for i, (f, n) in enumerate(zip(sublayers, norms)):
        x = x + named(f"branch_norms.{i}")(f(n(x)))
    return x


def keel(x, sublayers, layers, alpha=None, norm=None, named=None):
    """x ← LN(α x + F(LN(x))), α = L, the total number of sublayers: 2601.19895."""
    norms, named = norms_of(sublayers, norm, named)
    alpha = layers * len(sublayers) if alpha is None else alpha
    for i, (f, n) in enumerate(zip(sublayers, norms)):
        x = n(alpha * x + f(named(f"input_norms.{i}")(x)))
    return x


def peri(x, sublayers, layer, norm=None, named=None):
    """y_0 = Norm(x_0), y ← y + Norm(Module(Norm(y))): 2502.02732, Peri-LN with the optional norm of the embeddings."""
    if layer == 0:
        x = norms_of(sublayers, norm, named)[1]("embedding_norm")(x)
    return sandwich(x, sublayers, norm, named)


def deepnorm_constants(stack, n, m):
    """α and β for n encoder and m decoder layers: 2203.00555, figure 2."""
    if stack == "encoder":
        if m == 0:
            return (2 * n) ** (1 / 4), (8 * n) ** (-1 / 4)
        return 0.81 * (n**4 * m) ** (1 / 16), 0.87 * (n**4 * m) ** (-1 / 16)
    if n == 0:
        return (2 * m) ** (1 / 4), (8 * m) ** (-1 / 4)
    return (3 * m) ** (1 / 4), (12 * m) ** (-1 / 4)


def deepnorm(x, sublayers, stack, encoder_layers, decoder_layers, norm=None, named=None):
    """x ← LN(α x + f(x)): 2203.00555, figure 2."""
    alpha, _ = deepnorm_constants(stack, encoder_layers, decoder_layers)
    for f, n in zip(sublayers, norms_of(sublayers, norm, named)[0]):
        x = n(alpha * x + f(x))
    return x


def rezero(x, sublayers, w):
    """x_{i+1} = x_i + α_i F(x_i): 2003.04887, equation 1; all sublayers of a layer have one α in the authors' code."""
    for f in sublayers:
        x = x + w["gate"] * f(x)
    return x


def layer_scale(x, sublayers, w, norm=None, named=None):
    """x' = x + diag(λ_1, …, λ_d) f(η(x)): 2103.17239, section 2, LayerScale."""
    for i, (f, n) in enumerate(zip(sublayers, norms_of(sublayers, norm, named)[0])):
        x = x + f(n(x)) @ np.diag(w[f"scales.{i}"])
    return x


def hybrid_norm(x, sublayers, layer, pre_first=False, norm=None, named=None):
    """Y = Attention(X) + X, X' = FFN(Norm(Y)) + Norm(Y): 2503.04598, equations 7 and 8, a norm in front of the last branch
    only; those of queries, keys and values stand inside of attention. HybridNorm*: the bottom layer is pre-norm."""
    if pre_first and layer == 0:
        return pre(x, sublayers, norm, named)
    for f in sublayers[:-1]:
        x = x + f(x)
    y = norms_of(sublayers[:1], norm, named)[0][0](x)
    return y + sublayers[-1](y)


def mix_ln(x, sublayers, layer, layers, share, norm=None, named=None):
    """2412.13795, section 4: the first ⌊αL⌋ layers are Post-LN, the others Pre-LN; ours is 1 at least."""
    return (post if share and layer < max(1, math.floor(share * layers + 1e-9)) else pre)(x, sublayers, norm, named)


def residual_dual(x, sublayers, layer, layers, norm=None, named=None):
    """2304.14802, equations 5 to 7, of a stack of this one layer: x + LN(dual) at its end if it is the top one."""
    dual, (norms, named) = x, norms_of(sublayers, norm, named)
    for f, n in zip(sublayers, norms):
        branch = f(x)
        x, dual = n(x + branch), dual + branch
    return x + named("dual_norm")(dual) if layer == layers - 1 else x


def mhc(x, sublayers, w, streams=4, iterations=20, norm=None, named=None):
    """2512.24880, equations 7 to 9: H_pre = σ(α_pre x' φ_pre + b_pre), H_post = 2 σ(α_post x' φ_post + b_post), H_res =
    Sinkhorn–Knopp(α_res mat(x' φ_res) + b_res), x' = RMSNorm(vec(x)); x ← H_res x + H_postᵀ F(H_pre x): a stack of this
    one layer."""
    h, (norms, _) = np.stack([x] * streams, 2), norms_of(sublayers, norm, named)
    for i, (f, n) in enumerate(zip(sublayers, norms)):
        pre, post, mix = np.zeros(h.shape[:3]), np.zeros(h.shape[:3]), np.zeros((*h.shape[:3], streams))
        for b, t in np.ndindex(h.shape[:2]):
            flat = h[b, t].reshape(-1)
            by_token = flat / np.sqrt((flat**2).mean() + 1e-6) @ w[f"maps.{i}"]
            a_pre, a_post, a_res = w[f"scales.{i}"]
            pre[b, t] = paper.sigmoid(a_pre * by_token[:streams] + w[f"reads.{i}"])
            post[b, t] = 2 * paper.sigmoid(a_post * by_token[streams : 2 * streams] + w[f"writes.{i}"])
            m = np.exp(a_res * by_token[2 * streams :].reshape(streams, streams) + w[f"mixes.{i}"])
            for _ in range(iterations):
                m = m / m.sum(0, keepdims=True)
                m = m / m.sum(1, keepdims=True)
            mix[b, t] = m
        out = f(n(np.einsum("btn,btnc->btc", pre, h)))
        h = np.einsum("btmn,btnc->btmc", mix, h) + np.einsum("btn,btc->btnc", post, out)
    return h.sum(2)


def attention_residuals(x, sublayers, w, layer, block=1, norm=None, named=None):
    """2603.15031, equations 2 to 6: h_l = Σ_i α_(i→l) v_i, α a softmax of w_lᵀ RMSNorm(v_i), v_0 the embedding and v_i
    what layer i gives, or the sum of a block's: a stack of this one layer, whose w are those of what comes next."""
    h, (norms, _), values = x, norms_of(sublayers, norm, named), [x]
    for i, (f, n) in enumerate(zip(sublayers, norms)):
        out = f(n(h))
        if (layer * len(sublayers) + i) % block == 0:
            values.append(out)
        else:
            values[-1] = values[-1] + out
        phi = [
            np.exp(v / np.sqrt((v**2).mean(-1, keepdims=True) + 1e-6) @ w[f"queries.{i}"][:, 0])[..., None]
            for v in values
        ]
        h = sum(share * v for share, v in zip(phi, values)) / sum(phi)
    return h


def hyper_connections(x, sublayers, w, streams=4, dynamic=True, norm=None, named=None):
    """2409.19606, appendix J: width connection, layer, depth connection, over h [B, T, n, C]; copied at first, summed at
    the end: a stack of this one layer."""
    h, (norms, named) = np.stack([x] * streams, 2), norms_of(sublayers, norm, named)
    for i, (f, n) in enumerate(zip(sublayers, norms)):
        alpha, beta = w[f"alphas.{i}"], w[f"betas.{i}"]
        if dynamic:
            normed = named(f"state_norms.{i}")(h)
            alpha = alpha + np.tanh(normed @ w[f"maps.{i}"][:, :-1]) * w[f"alpha_scales.{i}"]
            beta = beta + np.tanh(normed @ w[f"maps.{i}"][:, -1]) * w[f"beta_scales.{i}"]
        mix = np.swapaxes(np.broadcast_to(alpha, (*h.shape[:2], *alpha.shape[-2:])), -1, -2) @ h
        out = f(n(mix[:, :, 0]))
        h = np.einsum("btc,btn->btnc", out, np.broadcast_to(beta, h.shape[:3])) + mix[:, :, 1:]
    return h.sum(2)
