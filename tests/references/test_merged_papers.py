"""Merged attention inside a model: what a decoder layer computes is the paper's one softmax over the source and its own
text, at once and step by step, and it has no other attention."""

import numpy as np
import paddle
import paper_equations as paper
import pytest

from paddle_tfm.errors import RecipeError
from paddle_tfm.protocols import Tap

HEADS = 2
MERGED = [
    "model.attention={encoder: multihead, decoder: merged}",
    "model.placement=post",
]  # its branch is given x itself
ROTARY = "model.position={{encoder: sinusoidal, decoder: rotary{}}}"
POSITIONS = {
    "sinusoidal": "model.position=sinusoidal",
    "rotary": ROTARY.format(""),
    "both": ROTARY.format(", cross: rotary"),
}


def merged(y, memory, w, memory_valid, valid, rotated):
    """2512.14856, and transformers' T5Gemma2MergedAttention: queries of y, keys and values of y, which are rotated, and of
    the memory, which are not; "both": they are too, each by its position in its own text."""

    def turn(x, which):
        return np.stack([paper.rotary(row, m) for m, row in enumerate(x)]) if rotated in which else x

    out = []
    for b in range(len(y)):
        q, k, v, k_m, v_m = (
            paper.affine(t[b], w[f"{name}.weight"], w[f"{name}.bias"])
            for name, t in (("query", y), ("key", y), ("value", y), ("key", memory), ("value", memory))
        )
        allowed = np.concatenate(
            [paper.visible(memory_valid, y.shape[1], False)[b], paper.visible(valid, y.shape[1], True)[b]], -1
        )
        heads = []
        for h in range(HEADS):
            at = slice(h * q.shape[1] // HEADS, (h + 1) * q.shape[1] // HEADS)
            keys = [turn(k_m[:, at], ("both",)), turn(k[:, at], ("rotary", "both"))]
            values = np.concatenate([v_m[:, at], v[:, at]])
            heads.append(
                paper.scaled_dot_product_attention(
                    turn(q[:, at], ("rotary", "both")), np.concatenate(keys), values, allowed
                )
            )
        out.append(paper.affine(np.concatenate(heads, -1), w["output.weight"], w["output.bias"]))
    return np.stack(out)


def branches(model, batch, chunk):
    """(what the lowest decoder layer's attention is given, what it gives) over chunks of the target."""
    with paddle.no_grad():
        memory = model.encode(batch.source, batch.source_valid)
        state, taps = model.start(memory), []
        for begin in range(0, batch.target_in.shape[1], chunk):
            part = slice(begin, begin + chunk)
            taps.append(Tap(recording=True))
            _, state = model.decode(batch.target_in[:, part], state, batch.target_valid[:, part], taps[-1])
    recorded = [dict(tap.recorded) for tap in taps]
    x, y = (
        np.concatenate([each[name].numpy() for each in recorded], 1)
        for name in ("decoder.input", "decoder.0.self.branch")
    )
    return memory.x.numpy(), x, y


@pytest.mark.parametrize("chunk", [1, 4])
@pytest.mark.parametrize("rotated", POSITIONS)
def test_a_layer_attends_to_both_texts_at_once(make_model, make_batch, rotated, chunk):
    model, batch = make_model(*MERGED, POSITIONS[rotated]), make_batch()
    attention, rng = model.decoder.layers[0].self_attention, np.random.default_rng(3)
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.5, parameter.shape).astype("float32"))
    w = {name: value.numpy() for name, value in attention.named_parameters()}
    memory, x, y = branches(model, batch, chunk)
    real = batch.target_valid.numpy()
    expected = merged(x, memory, w, batch.source_valid.numpy(), real, rotated)
    np.testing.assert_allclose(y[real], expected[real], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        (["model.attention={encoder: multihead, decoder: {self: merged, cross: multihead}}"], "choose it for both"),
        (["model.attention={self: multihead, cross: merged}"], "decoder: merged}`"),
        ([MERGED[0], "model.norm={encoder: layer, decoder: {self: layer, cross: rms, feed_forward: layer, final: layer}}"], "no cross-attention to normalize"),
        (["model.attention=merged"], "only a decoder beside an encoder has both"),
        ([MERGED[0], "model.position=alibi"], "acts through bias, which attention 'merged' does not support"),
    ],
    ids=["self alone", "cross alone", "a norm of cross-attention", "in an encoder", "by distances"],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make_model, overrides, sentence):
    with pytest.raises(RecipeError, match=sentence):
        make_model(*overrides)
