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


@pytest.mark.parametrize("chunk", [1, 4, 6])
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


@pytest.mark.parametrize("position", POSITIONS.values(), ids=list(POSITIONS))
def test_training_computes_what_decoding_does(make_model, make_batch, position):
    """A pass that keeps nothing projects the memory itself; its weights of a query, over both texts, sum to one."""
    model, batch, tap = make_model(*MERGED, position), make_batch(), Tap(recording=True)
    with paddle.no_grad():
        h, _ = model(batch, tap)
        kept, _ = model.decode(batch.target_in, model.start(model.encode(batch.source, batch.source_valid)))
    real = batch.target_valid.numpy()
    np.testing.assert_allclose(h.numpy()[real], kept.numpy()[real], rtol=1e-5, atol=1e-6)
    weights = dict(tap.recorded)["decoder.1.self.attention"].numpy()
    assert weights.shape == (3, HEADS, 6, 5 + 6) and not any(".cross." in name for name, _ in tap.recorded)
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)
    assert 0.2 < weights[0, :, -1, :5].sum(-1).mean() < 0.8  # neither text is left out


def test_rows_of_one_sentence_continue_as_each_would_alone(make_model, make_batch):
    """As a beam search reorders them: two outputs of each sentence."""
    model, batch = make_model(*MERGED), make_batch(target_lengths=(6, 6, 6))
    twice, rows = paddle.to_tensor([0, 0, 1, 1, 2, 2]), paddle.to_tensor([1, 0, 2, 2, 5, 4])
    with paddle.no_grad():
        full, _ = model(batch)
        memory, target = model.encode(batch.source, batch.source_valid), batch.target_in
        _, state = model.decode(target[:, :2], model.start(memory))
        _, state = model.decode(target[:, 2:3].index_select(twice), state.select(twice, group=2))
        state = state.select(rows, same_memory=True, group=2)
        h, _ = model.decode(target[:, 3:4].index_select(twice), state)
    np.testing.assert_allclose(h[:, 0].numpy(), full[:, 3].index_select(twice).numpy(), rtol=1e-4, atol=1e-5)


def test_a_layer_has_two_branches_and_the_matrices_of_one_attention_less(make_model):
    """16 channels: four matrices with biases, and the norm of a branch, for each of two layers."""
    separate, model = (
        make_model("model.placement=post", "model.decoder_layers=2"),
        make_model(*MERGED, "model.decoder_layers=2"),
    )
    sizes = [sum(int(parameter.size) for parameter in each.parameters()) for each in (separate, model)]
    assert sizes[0] - sizes[1] == 2 * (4 * (16 * 16 + 16) + 2 * 16)
    assert list(model.decoder.layers[0].branches()) == ["self", "feed_forward"]


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        (["model.attention={encoder: multihead, decoder: {self: merged, cross: multihead}}"], "choose it for both"),
        (["model.attention={self: multihead, cross: merged}"], "decoder: merged}`"),
        ([MERGED[0], "model.norm={encoder: layer, decoder: {self: layer, cross: rms, feed_forward: layer, final: layer}}"], "no cross-attention to normalize"),
        (["model.attention=merged"], "only a decoder beside an encoder has both"),
        (["model.attention=merged", "model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"], "only a decoder beside an encoder has both"),
        ([MERGED[0], "model.position=alibi"], "acts through bias, which attention 'merged' does not support"),
    ],
    ids=["self alone", "cross alone", "a norm of cross-attention", "in an encoder", "decoder-only", "by distances"],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make_model, overrides, sentence):
    with pytest.raises(RecipeError, match=sentence):
        make_model(*overrides)
