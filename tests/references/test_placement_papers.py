"""Placements over a whole stack, and the constants and starting values of their papers."""

import functools

import numpy as np
import paddle
import paper_equations as paper
import placement_numpy as twins
import pytest
from paper_cases import (
    D_MODEL,
    LENGTH,
    MAX_LENGTH,
    VALID,
    parameters,
    positions,
)

from paddle_tfm.protocols import LayerSite, PositionalEncoding, TokenInfo


def norm_factory(registry, name="layer"):
    return lambda site, width: registry.build("norm", name, d_model=width, site=site, max_length=MAX_LENGTH)


def place(build, registry, name, sites):
    return build("placement", name, d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry))


def norm_of(w, name):
    return functools.partial(paper.layer_norm, weight=w[f"{name}.weight"], bias=w[f"{name}.bias"])


def norms_of(w, count):
    return [norm_of(w, f"norms.{i}") for i in range(count)]


# ---------------------------------------------------------------------------- what depends on the stack as a whole


class WholeStack:
    """The placements of all layers of a stack, around branches that NumPy repeats."""

    def __init__(self, build, registry, precision, rng, spec, stack="decoder", depth=3):
        names = ["self", "cross", "feed_forward"] if stack == "decoder" else ["self", "feed_forward"]
        layers = {"encoder_layers": depth, "decoder_layers": 1} if stack == "encoder" else {
            "encoder_layers": 1, "decoder_layers": depth
        }  # fmt: skip
        sites = [[LayerSite(stack, name, i, **layers) for name in names] for i in range(depth)]
        self.made = [place(build, registry, spec, of_layer) for of_layer in sites]
        self.matrices = [rng.normal(scale=0.4, size=(D_MODEL, D_MODEL)) for _ in range(depth * len(names))]
        self.x, self.count, self.precision = rng.normal(size=(3, LENGTH, D_MODEL)), len(names), precision

    def norms(self):
        return [norm for _, w in self.made for norm in norms_of(w, self.count)]

    def branches(self):
        return [lambda y, matrix=matrix: np.tanh(y @ matrix) for matrix in self.matrices]

    def ours(self):
        info = TokenInfo(PositionalEncoding(), positions(LENGTH), self.precision.tensor(VALID))
        made = [placement.eval() or placement for placement, _ in self.made]
        state = made[0].enter(self.precision.tensor(self.x), info)
        for i, placement in enumerate(made):
            matrices = self.matrices[i * self.count : (i + 1) * self.count]
            tensors = [self.precision.tensor(matrix) for matrix in matrices]
            state = placement(state, [lambda y, tensor=tensor: paddle.tanh(y @ tensor) for tensor in tensors], info)
        return made[-1].leave(state, info)


def test_residual_dual_is_the_papers(build, registry, precision, rng):
    """2304.14802, equations 5-7, as in microsoft/ResiDual: the post-norm residual goes into every sublayer, the other is
    the sum of the embedded tokens and of all branches; x + LN(dual) ends the stack."""
    whole = WholeStack(build, registry, precision, rng, "residual_dual")
    x = dual = whole.x
    for f, n in zip(whole.branches(), whole.norms(), strict=True):
        branch = f(x)
        dual = dual + branch
        x = n(x + branch)
    precision.same(whole.ours(), x + norm_of(whole.made[-1][1], "dual_norm")(dual))
    assert [any("dual_norm" in name for name in w) for _, w in whole.made] == [False, False, True]


@pytest.mark.parametrize(
    "depth, share, post",
    [(20, 0.55, 11), (50, 0.58, 29), (3, 0.25, 1), (4, 0, 0)],
)
def test_mix_ln_is_the_papers(build, registry, precision, rng, depth, share, post):
    """2412.13795, section 4: the first ⌊αL⌋ layers are Post-LN, the others Pre-LN; ours is 1 at least."""
    whole = WholeStack(build, registry, precision, rng, {"name": "mix_ln", "share": share}, "encoder", depth)
    x = whole.x
    for k, (f, n) in enumerate(zip(whole.branches(), whole.norms(), strict=True)):
        x = n(x + f(x)) if k < 2 * post else x + f(n(x))
    precision.same(whole.ours(), x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_hyper_connections_start_as_pre_norm(registry, precision, rng, dynamic):
    """2409.19606, equation 14: B = 1, A_m = e_{k mod n}, A_r = I, k counting sublayers from the bottom of the stack, so
    that the sum of the n streams is n times what pre-norm has; W = 0 and s = 0.01."""

    def build(kind, spec, **givens):
        component = registry.build(kind, spec, **givens)
        return component, parameters(component)

    whole = WholeStack(build, registry, precision, rng, {"name": "hyper_connections", "dynamic": dynamic})
    precision.same(whole.ours(), 4 * paper.pre_norm(whole.x, whole.branches(), whole.norms()))


@pytest.mark.parametrize("block", [1, 4])
def test_attention_residuals_are_the_papers(build, registry, precision, rng, block):
    """2603.15031, figure 2: before each layer a softmax over the blocks so far and the sum within the block, `layer_number
    % block_size`; and one over all of them at the end of the stack."""
    whole = WholeStack(build, registry, precision, rng, {"name": "attention_residuals", "block": block})
    queries = [w[f"queries.{i}"][:, 0] for _, w in whole.made for i in range(whole.count)]

    def attend(values, query):
        v = np.stack(values)  # [N, B, T, C]
        logits = np.einsum("d,nbtd->nbt", query, v / np.sqrt((v**2).mean(-1, keepdims=True) + 1e-6))
        return np.einsum("nbt,nbtd->btd", np.exp(logits) / np.exp(logits).sum(0), v)

    h, blocks, partial = whole.x, [whole.x], None
    for number, (f, n) in enumerate(zip(whole.branches(), whole.norms(), strict=True)):
        if number % block == 0 and partial is not None:
            blocks.append(partial)
            partial = None
        partial = f(n(h)) if partial is None else partial + f(n(h))
        h = attend([*blocks, partial], queries[number])
    precision.same(whole.ours(), h)


# --------------------------------------------------------------------------------------------------------- DeepNorm


@pytest.mark.parametrize("encoder_layers, decoder_layers", [(6, 6), (18, 1), (100, 0), (0, 100)])
def test_deepnorm_constants_are_the_papers(registry, encoder_layers, decoder_layers):
    for stack, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        if layers:
            sites = [LayerSite(stack, "self", 0, encoder_layers, decoder_layers)]
            placement = registry.build(
                "placement", "deepnorm", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
            )
            expected = twins.deepnorm_constants(stack, encoder_layers, decoder_layers)
            assert (placement.alpha, placement.branch_gain) == pytest.approx(expected, rel=1e-12)


# ----------------------------------------------------------------------------------------------------------- Sub-LN


@pytest.mark.parametrize("encoder_layers, decoder_layers", [(6, 6), (18, 1), (12, 0), (0, 12)])
def test_sub_ln_gain_is_the_papers(registry, encoder_layers, decoder_layers):
    """Figure 2; of a single stack sqrt(log 2N) and sqrt(log 2M)."""
    for stack, sublayers in (("encoder", ["self", "feed_forward"]), ("decoder", ["self", "cross", "feed_forward"])):
        if not (encoder_layers if stack == "encoder" else decoder_layers):
            continue
        sites = [LayerSite(stack, sublayer, 0, encoder_layers, decoder_layers) for sublayer in sublayers]
        placement = registry.build(
            "placement", "sub_ln", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
        )
        single = not encoder_layers or not decoder_layers
        expected = np.sqrt(np.log(24)) if single else paper.sub_ln_gain(stack, encoder_layers, decoder_layers)
        assert placement.branch_gain == pytest.approx(dict.fromkeys(("self", "feed_forward"), expected), rel=1e-12)
