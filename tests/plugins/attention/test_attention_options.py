"""What recipes ask of every shipped attention: its geometry, the weights of its branch, options that are
refused, and memory."""

import numpy as np
import paddle
import pytest

from paddle_tfm import memory
from paddle_tfm.options import parameters
from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.canon import Canon
from paddle_tfm_plugins.attention.cosine import Cosine
from paddle_tfm_plugins.attention.differential import Differential
from paddle_tfm_plugins.attention.exclusive import Exclusive
from paddle_tfm_plugins.attention.full_width_heads import FullWidthHeads
from paddle_tfm_plugins.attention.gated import Gated
from paddle_tfm_plugins.attention.grouped_query import GroupedQuery
from paddle_tfm_plugins.attention.interleaved import Interleaved
from paddle_tfm_plugins.attention.linear import LinearAttention
from paddle_tfm_plugins.attention.local import Local
from paddle_tfm_plugins.attention.merged import Merged
from paddle_tfm_plugins.attention.mla import MultiHeadLatent
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.attention.qk_norm import QKNorm
from paddle_tfm_plugins.attention.scalable_softmax import ScalableSoftmax
from paddle_tfm_plugins.attention.sigmoid import SigmoidAttention
from paddle_tfm_plugins.attention.single_head import SingleHead
from paddle_tfm_plugins.attention.sinks import Sinks
from paddle_tfm_plugins.attention.talking_heads import TalkingHeads
from paddle_tfm_plugins.attention.value_residual import ValueResidual

C, H = 8, 2
FULL = LayerSite("encoder", "self", 0, 1, 1)
MAKERS = {
    "multihead": lambda site, **more: MultiHead(C, H, 0.0, **more),
    "multihead head_dim": lambda site, **more: MultiHead(C, 3, 0.0, head_dim=5, **more),
    "single_head": lambda site, **more: SingleHead(C, 0.0, bias=True, **more),
    "single_head head_size": lambda site, **more: SingleHead(C, 0.0, head_size=3, **more),
    "full_width_heads": lambda site, **more: FullWidthHeads(d_model=C, num_heads=H, dropout=0.0, **more),
    "linear": lambda site, **more: LinearAttention(C, H, site=site, **more),
    "multi-query": lambda site, **more: GroupedQuery(C, H, 0.0, **more),
    "grouped_query": lambda site, **more: GroupedQuery(C, 4, 0.0, kv_heads=2, **more),
    "local": lambda site, **more: Local(d_model=C, num_heads=H, dropout=0.0, site=site, window=2, **more),
    "talking_heads": lambda site, **more: TalkingHeads(d_model=C, num_heads=H, dropout=0.0, **more),
    "cosine": lambda site, **more: Cosine(d_model=C, num_heads=H, dropout=0.0, **more),
    "qk_norm": lambda site, **more: QKNorm(d_model=C, num_heads=H, dropout=0.0, **more),
    "qk_norm over all heads": lambda site, **more: QKNorm(
        d_model=C, num_heads=H, dropout=0.0, norm="layer", per_head=False, **more
    ),
    "sinks": lambda site, **more: Sinks(d_model=C, num_heads=H, dropout=0.0, **more),
    "sinks zero": lambda site, **more: Sinks(d_model=C, num_heads=H, dropout=0.0, learned=False, **more),
    "canon": lambda site, **more: Canon(d_model=C, num_heads=H, dropout=0.0, **more),
    "exclusive": lambda site, **more: Exclusive(d_model=C, num_heads=H, dropout=0.0, **more),
    "merged": lambda site, **more: Merged(d_model=C, num_heads=H, dropout=0.0, **more),
    "value_residual": lambda site, **more: ValueResidual(d_model=C, num_heads=H, dropout=0.0, site=site, **more),
    "scalable_softmax": lambda site, **more: ScalableSoftmax(d_model=C, num_heads=H, dropout=0.0, **more),
    "sigmoid": lambda site, **more: SigmoidAttention(d_model=C, num_heads=H, dropout=0.0, **more),
    "interleaved": lambda site, **more: Interleaved(
        d_model=C, num_heads=H, dropout=0.0, site=site, window=2, every=1, **more
    ),
    "mla": lambda site, **more: MultiHeadLatent(C, H, 0.0, **more),
    "mla head_dim": lambda site, **more: MultiHeadLatent(C, H, 0.0, head_dim=8, query_latent=5, **more),
    "gated": lambda site, **more: Gated(d_model=C, num_heads=H, dropout=0.0, **more),
    "differential": lambda site, **more: Differential(d_model=C, num_heads=4, dropout=0.0, site=site, **more),
}
GEOMETRIES = {  # (score_heads, kv_heads, head_dim) where they are not (H, H, C / H), and what asks for them
    "multihead head_dim": ((3, 3, 5), {"num_heads": 3, "head_dim": 5}),
    "single_head": ((1, 1, C), {}),
    "single_head head_size": ((1, 1, 3), {"head_size": 3}),
    "full_width_heads": ((H, H, C), {}),
    "multi-query": ((H, 1, C // H), {}),
    "grouped_query": ((4, 2, C // 4), {"num_heads": 4, "kv_heads": 2}),
    "mla": ((H, 1, 2), {}),
    "mla head_dim": ((H, 1, 4), {"head_dim": 8}),
    "differential": ((4, 4, C // 4), {"num_heads": 4}),
}
every = pytest.mark.parametrize("name", MAKERS)


def make(name, site, seed=0, **more):
    attention = MAKERS[name](site, **more)
    rng = np.random.default_rng(seed)
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.5, parameter.shape).astype("float32"))
    return attention


def at(x, valid=None, start=0):
    batch, length = x.shape[:2]
    positions = paddle.arange(start, start + length).unsqueeze(0)
    return TokenInfo(PositionalEncoding(), positions, paddle.ones([batch, length], "bool") if valid is None else valid)


def mask(q, k, causal):
    return Mask(q.positions, k.positions, k.valid, causal, k.encoding)


def tensor(*shape, seed=1):
    x = paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))
    x.stop_gradient = False
    return x


def attend(attention, x, causal, valid=None):
    """Self-attention over all of x."""
    here = at(x, valid)
    return attention(x, attention.project(x, here), here, mask(here, here, causal), Tap())


@every
def test_the_geometry_is_that_of_the_keys(name):
    attention = make(name, FULL)
    expected, options = GEOMETRIES.get(name, ((H, H, C // H), {}))
    geometry = type(attention).geometry(C, **{"num_heads": H, **options})
    assert tuple(geometry) == expected
    kv = attention.project(tensor(2, 4, C), at(tensor(2, 4, C)))
    assert (geometry.kv_heads, geometry.head_dim) == (kv.key.shape[1], kv.key.shape[3])


@every
def test_branch_weights_scale_the_branch_and_not_its_scores(name):
    attention, x = make(name, FULL), tensor(2, 4, C)
    for key, parameter in attention.named_parameters():
        if key in ("value.bias", "output.bias"):
            parameter.set_value(paddle.zeros_like(parameter))
    before, weights = attend(attention, x, False).numpy(), attention.branch_weights()
    for weight in weights:
        weight.set_value(weight * 2.0)
    np.testing.assert_allclose(attend(attention, x, False).numpy(), before * 2.0 ** len(weights), rtol=1e-4, atol=1e-4)
    assert len(weights) == (1 if name in ("single_head", "single_head head_size", "differential") else 2)


@pytest.mark.parametrize(
    "cls",
    [
        MultiHead,
        LinearAttention,
        GroupedQuery,
        MultiHeadLatent,
        Differential,
    ],
)
def test_heads_that_do_not_divide_the_width_are_refused(cls):
    sentence = "`num_heads` must divide `d_model`, but 7 does not divide 256"
    arguments = {"d_model": 256, "num_heads": 7, "dropout": 0.0, "site": FULL}
    arguments = {name: value for name, value in arguments.items() if name in parameters(cls)}
    for refuse in (lambda: cls(**arguments), lambda: cls.geometry(256, 7)):
        with pytest.raises(ValueError) as error:
            refuse()
        assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("make_it", "sentence"),
    [
        (lambda: MultiHead(8, 0, 0.0), "`num_heads` must be at least 1, but is 0"),
        (lambda: MultiHead(8, 2, 0.0, head_dim=0), "`head_dim` must be at least 1, but is 0"),
        (lambda: FullWidthHeads(d_model=8, num_heads=0, dropout=0.0), "`num_heads` must be at least 1, but is 0"),
        (lambda: LinearAttention(8, 0), "`num_heads` must be at least 1, but is 0"),
        (lambda: SingleHead(8, 0.0, head_size=0), "`head_size` must be at least 1, but is 0"),
        (lambda: MultiHead(8, 2, 1.5), "`rate` must be in [0, 1), but is 1.5"),
        (lambda: GroupedQuery(8, 4, 0.0, kv_heads=0), "`kv_heads` must be at least 1, but is 0"),
        (lambda: GroupedQuery(8, 4, 0.0, kv_heads=3), "`kv_heads` must divide `num_heads`, but 3 does not divide 4"),
        (lambda: GroupedQuery(8, 2, 0.0, kv_heads=4), "`kv_heads` must divide `num_heads`, but 4 does not divide 2"),
        (
            lambda: GroupedQuery.geometry(8, 4, kv_heads=3),
            "`kv_heads` must divide `num_heads`, but 3 does not divide 4",
        ),
        (lambda: Local(d_model=8, num_heads=2, dropout=0.0, window=0), "`window` must be at least 1, but is 0"),
        (
            lambda: Local(d_model=8, num_heads=2, dropout=0.0, site=LayerSite("decoder", "cross", 0, 1, 1)),
            "a window needs one text: positions of source and target have no distance",
        ),
        (
            lambda: QKNorm(d_model=8, num_heads=2, dropout=0.0, norm="batch"),
            "`norm` must be one of rms, layer, but is 'batch'",
        ),
        (
            lambda: SigmoidAttention(d_model=8, num_heads=2, dropout=0.0, length=0),
            "`length` must be at least 1, but is 0",
        ),
        (lambda: Canon(d_model=8, num_heads=2, dropout=0.0, kernel=1), "`kernel` must be in [2, 65536], but is 1"),
        (
            lambda: Canon(d_model=8, num_heads=2, dropout=0.0, site=LayerSite("decoder", "cross", 0, 1, 1)),
            "in cross-attention queries and keys are two texts; choose it for self-attention alone",
        ),
        (lambda: Exclusive(d_model=8, num_heads=8, dropout=0.0), "`head_dim` must be at least 2, but is 1"),
        (
            lambda: Exclusive(d_model=8, num_heads=2, dropout=0.0, site=LayerSite("decoder", "cross", 0, 1, 1)),
            "it takes a token's own value out, and in cross-attention all values are another text's",
        ),
        (
            lambda: ValueResidual(d_model=8, num_heads=2, dropout=0.0, site=LayerSite("decoder", "cross", 1, 2, 2)),
            "it mixes in values of the first layer, and in cross-attention all layers make theirs of one text",
        ),
        (
            lambda: ScalableSoftmax(d_model=8, num_heads=2, dropout=0.0, scale=0.0),
            "`scale` must be positive, but is 0.0",
        ),
        (
            lambda: Merged(d_model=8, num_heads=2, dropout=0.0, site=FULL),
            "it merges self- and cross-attention, and only a decoder beside an encoder has both",
        ),
        (lambda: Interleaved(d_model=8, num_heads=2, dropout=0.0, every=0), "`every` must be at least 1, but is 0"),
        (lambda: MultiHeadLatent(8, 8, 0.0), "`rotary_dim` must be at least 1, but is 0"),
        (lambda: MultiHeadLatent(8, 2, 0.0, latent=0), "`latent` must be at least 1, but is 0"),
        (lambda: Cosine(d_model=8, num_heads=2, dropout=0.0, length=1), "`length` must be at least 2, but is 1"),
        (
            lambda: Differential(d_model=9, num_heads=3, dropout=0.0, site=FULL),
            "`num_heads` must be even, for a head has two softmaxes, but is 3",
        ),
        (lambda: Differential.geometry(9, 3), "`num_heads` must be even, for a head has two softmaxes, but is 3"),
    ],
)
def test_what_cannot_be_is_refused_by_a_sentence(make_it, sentence):
    with pytest.raises(ValueError) as error:
        make_it()
    assert str(error.value) == sentence


QUADRATIC = ("multihead", "grouped_query", "talking_heads", "mla", "synthesizer", "convolution", "linear")


@pytest.mark.parametrize(("encoding", "held"), [("none", 6), ("shaw", 20), ("transformer_xl", 20), ("fire", 64)])
def test_what_an_encoding_takes_counts(make_model, monkeypatch, encoding, held):
    model = make_model(f"model.position={{encoder: {encoding}, decoder: none, cross: none}}", "model.num_heads=1")
    tokens, valid = paddle.full([1, 256], 5, "int64"), paddle.ones([1, 256], "bool")
    monkeypatch.setattr(memory, "MUCH", 0)
    monkeypatch.setattr(memory, "free", lambda: 4.0 * held * 256 * 256)
    model.encode(tokens, valid)
    monkeypatch.setattr(memory, "free", lambda: 4.0 * held * 256 * 256 - 1)
    with pytest.raises(MemoryError, match=r"of 256 tokens to 256 needs .* GB, but .* GB are free"):
        model.encode(tokens, valid)


@pytest.mark.parametrize("name", QUADRATIC)
def test_a_text_whose_pairs_fill_the_memory_is_refused_before(make_model, monkeypatch, name):
    model = make_model(f"model.attention={{encoder: multihead, decoder: {{self: {name}, cross: multihead}}}}")
    tokens, valid = paddle.full([1, 256], 5, "int64"), paddle.ones([1, 256], "bool")
    start = model.start(model.encode(tokens[:, :3], valid[:, :3]))
    monkeypatch.setattr(memory, "MUCH", 0)
    monkeypatch.setattr(memory, "free", lambda: 4.0 * 2 * 256 * 256)  # as much as the scores of two heads alone
    model.decode(tokens[:, :32], start)
    with pytest.raises(MemoryError, match=r"attention of 256 tokens to 256 needs .* GB, but .* GB are free"):
        model.decode(tokens, start)
