"""Placements over a whole stack, and the constants and starting values of their papers."""

import functools

import numpy as np
import paddle
import paper_equations as paper
import placement_numpy as twins
import pytest
from paper_cases import (
    D_FF,
    D_MODEL,
    ENCODER,
    HEADS,
    LENGTH,
    MAX_LENGTH,
    VALID,
    parameters,
    positions,
)

from paddle_tfm.protocols import LayerSite, PositionalEncoding, TokenInfo

PLACEMENTS = (
    "post", "pre", "res_post", "parallel", "sub_ln", "admin", "hybrid_norm", "mix_ln", "residual_dual",
    "hyper_connections", "mhc", "attention_residuals", "keel", "sandwich", "peri", "deepnorm", "rezero", "layer_scale",
)  # fmt: skip
WITHOUT_FINAL_NORM = {"post", "admin", "deepnorm", "keel", "rezero", "residual_dual"}


def norm_factory(registry, name="layer"):
    return lambda site, width: registry.build("norm", name, d_model=width, site=site, max_length=MAX_LENGTH)


def place(build, registry, name, sites):
    return build("placement", name, d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry))


def norm_of(w, name):
    return functools.partial(paper.layer_norm, weight=w[f"{name}.weight"], bias=w[f"{name}.bias"])


def norms_of(w, count):
    return [norm_of(w, f"norms.{i}") for i in range(count)]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_stack_ends_with_a_norm_where_the_papers_does(registry, name):
    """2002.04745, table 1: after Pre-LN's last layer stands a final norm; Post-LN has none, for it just normalized.
    ReZero does without any."""
    placement = registry.entry("placement", name).load()
    assert placement.final_norm is (name not in WITHOUT_FINAL_NORM)
    assert placement.inner_norm is (name == "sub_ln")
    assert placement.projection_norm is (name == "hybrid_norm")


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


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_residual_dual_is_the_papers(build, registry, precision, rng, stack):
    """2304.14802, equations 5-7, as in microsoft/ResiDual: the post-norm residual goes into every sublayer, the other is
    the sum of the embedded tokens and of all branches; x + LN(dual) ends the stack."""
    whole = WholeStack(build, registry, precision, rng, "residual_dual", stack)
    x = dual = whole.x
    for f, n in zip(whole.branches(), whole.norms(), strict=True):
        branch = f(x)
        dual = dual + branch
        x = n(x + branch)
    precision.same(whole.ours(), x + norm_of(whole.made[-1][1], "dual_norm")(dual))
    assert [any("dual_norm" in name for name in w) for _, w in whole.made] == [False, False, True]


@pytest.mark.parametrize(
    "depth, share, post",
    [
        (20, 0.55, 11),
        (50, 0.58, 29),
        (3, 0.25, 1),
        (4, 0, 0),
    ],
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
    alphas = [w[f"alphas.{i}"] for _, w in whole.made for i in range(3)]
    for k, alpha in enumerate(alphas):
        np.testing.assert_array_equal(alpha, np.concatenate([np.eye(4)[:, [k % 4]], np.eye(4)], 1))
    for _, w in whole.made:
        assert all((w[f"betas.{i}"] == np.ones(4)).all() for i in range(3))
        if dynamic:
            assert all((w[f"maps.{i}"] == np.zeros((D_MODEL, 6))).all() for i in range(3))
            scales = [w[f"{name}_scales.{i}"] for name in ("alpha", "beta") for i in range(3)]
            np.testing.assert_allclose(scales, 0.01, rtol=1e-7)
    precision.same(whole.ours(), 4 * paper.pre_norm(whole.x, whole.branches(), whole.norms()))


def test_manifold_constrained_connections_keep_the_sum_of_the_streams(build, registry, rng):
    """2512.24880, section 4.1: rows and columns of H_res sum to one, whatever it was made of; so the streams sum to what
    they summed to, and what the sublayer wrote."""
    placement, _ = place(build, registry, "mhc", [LayerSite("encoder", "self", 0, 1, 1)])
    for parameter in placement.parameters():
        parameter.set_value(rng.normal(scale=0.3, size=parameter.shape).astype("float32"))
    x = paddle.to_tensor(rng.normal(size=[2, 3, 4, D_MODEL]).astype("float32"))
    _, write, mix = placement.weights(0, x)
    np.testing.assert_allclose(mix.sum(-1).numpy(), 1.0, rtol=1e-5)
    np.testing.assert_allclose(mix.sum(-2).numpy(), 1.0, rtol=1e-5)
    assert float(mix.min()) >= 0.0
    info = TokenInfo(PositionalEncoding(), positions(3), paddle.ones([2, 3], "bool"))
    out = placement.wrap(0, x, lambda y: paddle.ones_like(y), info)
    expected = (x.sum(2) + write.sum(2, keepdim=True)).numpy()
    np.testing.assert_allclose(out.sum(2).numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize("block", [1, 2, 4])
def test_attention_residuals_are_the_papers(build, registry, precision, rng, stack, block):
    """2603.15031, figure 2: before each layer a softmax over the blocks so far and the sum within the block, `layer_number
    % block_size`; and one over all of them at the end of the stack."""
    whole = WholeStack(build, registry, precision, rng, {"name": "attention_residuals", "block": block}, stack)
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


def test_attention_residuals_start_as_plain_means(registry, precision, rng):
    """2603.15031, section 3: pseudo-queries start at zero, so that all earlier outputs weigh the same."""

    def build(kind, spec, **givens):
        component = registry.build(kind, spec, **givens)
        return component, parameters(component)

    whole = WholeStack(build, registry, precision, rng, "attention_residuals")
    values = [whole.x]
    for f, n in zip(whole.branches(), whole.norms(), strict=True):
        values.append(f(n(np.mean(values, 0))))
    precision.same(whole.ours(), np.mean(values, 0))


# --------------------------------------------------------------------------------------------------------- DeepNorm


@pytest.mark.parametrize("encoder_layers, decoder_layers", [(6, 6), (2, 3), (18, 1), (100, 0), (0, 100)])
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


@pytest.mark.parametrize("encoder_layers, decoder_layers", [(6, 6), (2, 3), (18, 1)])
def test_sub_ln_gain_is_the_papers(registry, encoder_layers, decoder_layers):
    for stack, sublayers in (("encoder", ["self", "feed_forward"]), ("decoder", ["self", "cross", "feed_forward"])):
        sites = [LayerSite(stack, sublayer, 0, encoder_layers, decoder_layers) for sublayer in sublayers]
        placement = registry.build(
            "placement", "sub_ln", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
        )
        expected = paper.sub_ln_gain(stack, encoder_layers, decoder_layers)
        assert placement.branch_gain == pytest.approx(dict.fromkeys(("self", "feed_forward"), expected), rel=1e-12)


@pytest.mark.parametrize("stack, encoder_layers, decoder_layers", [("encoder", 12, 0), ("decoder", 0, 12)])
def test_sub_ln_gain_of_a_single_stack_is_the_papers(registry, stack, encoder_layers, decoder_layers):
    """2210.06423, figure 2: sqrt(log 2N) and sqrt(log 2M)."""
    sites = [LayerSite(stack, "self", 0, encoder_layers, decoder_layers)]
    placement = registry.build(
        "placement", "sub_ln", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
    )
    assert placement.branch_gain == pytest.approx({"self": np.sqrt(np.log(24))}, rel=1e-12)


def test_branch_gain_scales_what_the_papers_scale(registry):
    """Of Sub-LN and of DeepNorm: the feed-forward matrices, and the value and output projections; not those of queries
    and keys. Gated networks and mixtures are not in the papers."""
    givens = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "d_ff": D_FF, "site": ENCODER}
    scaled = {
        "multihead": ("attention", {"value.weight", "output.weight"}),
        "full_width_heads": ("attention", {"value.weight", "output.weight"}),
        "linear": ("attention", {"value.weight", "output.weight"}),
        "relu": ("feed_forward", {"inner.weight", "output.weight"}),
        "gelu": ("feed_forward", {"inner.weight", "output.weight"}),
        "relu_squared": ("feed_forward", {"inner.weight", "output.weight"}),
    }
    for name, (kind, expected) in scaled.items():
        component = registry.build(kind, name, **givens)
        named = {id(parameter): path for path, parameter in component.named_parameters()}
        assert {named[id(weight)] for weight in component.branch_weights()} == expected, name
