"""Each component either is exported or refuses by its own name; and nothing is believed that was not compared."""

from __future__ import annotations

import numpy as np
import pytest

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm.export.proof import prove
from paddle_tfm.export.variables import ExportRefused, variables
from paddle_tfm.protocols import KeyValue, Norm, Placement
from paddle_tfm_plugins.attention.multihead import MultiHead

KINDS = ("attention", "norm", "placement", "position", "feed_forward", "head")
HELD = {
    "attention": {"multihead", "single_head", "grouped_query", "local", "full_width_heads", "interleaved"},
    "norm": {"layer", "rms", "scale"},
    "placement": {"pre", "post", "sandwich", "peri", "layer_scale"},
    "position": {
        *(
            "sinusoidal",
            "learned",
            "scaled_sinusoidal",
            "none",
            "shaw",
            "t5",
            "rotary",
            "alibi",
            "kerple",
            "randomized",
            "nope_hybrid",
        ),
    },
    "feed_forward": {"relu", "gelu", "swiglu", "geglu", "reglu"},
    "head": {"linear", "tied"},
}
HELD_IN_PART = {  # what each depends on
    ("attention", "cosine"): "normalizes each head, and CTranslate2's cross-attention all heads of a query together",
    ("attention", "qk_norm"): "normalizes each head, and CTranslate2's cross-attention all heads of a query together",
    ("placement", "parallel"): "runs sublayers side by side, which CTranslate2 does in decoder-only models alone",
    ("position", "chain"): "acts on embeddings and on scores, and CTranslate2 drops the former beside the latter",
}
OPTIONS = {
    "chain": "{name: chain, parts: [sinusoidal, alibi]}",
    "randomized": "{name: randomized, encoding: sinusoidal, longest: 100}",
    "local": "{self: local, cross: multihead}",
    "interleaved": "{self: interleaved, cross: multihead}",
    "forgetting": "{encoder: multihead, decoder: {self: forgetting, cross: multihead}}",
    "gated_deltanet": "{encoder: multihead, decoder: {self: gated_deltanet, cross: multihead}}",
    "convolution": "{self: convolution, cross: multihead}",
    "recurrent": "{self: recurrent, cross: multihead}",
    "synthesizer": "{self: synthesizer, cross: multihead}",
}
ENTRIES = [entry for entry in create_registry() if entry.kind in KINDS and not entry.wrong_on_purpose]


def test_the_catalogue_is_whole():
    named = {(entry.kind, entry.name) for entry in ENTRIES}
    assert {(kind, name) for kind, names in HELD.items() for name in names} | HELD_IN_PART.keys() <= named


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_each_component_is_held_or_refuses_by_name(make_random, entry):
    tied = ["model.share_embeddings=true", "vocabulary.shared=true"] if entry.name == "tied" else []
    spec = OPTIONS.get(entry.name, entry.name)
    if entry.kind == "position" and entry.name in ("xpos", "cope"):
        spec = f"{{encoder: sinusoidal, decoder: {entry.name}}}"
    model = make_random(f"model.{entry.kind}={spec}", *tied)
    names = {entry.load(): entry.name for entry in ENTRIES}
    if entry.name in HELD[entry.kind]:
        assert variables(model, names).arrays
        return
    with pytest.raises(ExportRefused) as refused:
        variables(model, names)
    kind, message = entry.kind.replace("_", "-"), str(refused.value)
    if entry.name == "sub_ln":  # the sublayers may be asked first
        assert "norm before" in message
        return
    assert message.startswith(f"{kind} '{entry.name}' ") and "CTranslate2" in message and len(message) < 160
    assert HELD_IN_PART.get((entry.kind, entry.name), "") in message


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["model.norm={self: layer, feed_forward: {name: layer, eps: 1e-6}}"],
            "differ in eps (layer 1e-05, layer 1e-06)",
        ),
        (["model.norm={self: layer, cross: scale}"], "and CTranslate2 has one for all"),
        (["model.attention={self: {name: multihead, num_heads: 2}, cross: multihead}"], "differ in heads"),
        (["model.attention={name: single_head, head_size: 8}"], "one width for both"),
        (
            ["model.position={encoder: sinusoidal, decoder: sinusoidal, cross: t5}"],
            "where CTranslate2 knows no positions",
        ),
        (["model.attention={name: qk_norm, per_head: false}"], "CTranslate2's self-attention each by itself"),
        (
            ["model.attention={self: interleaved, cross: multihead}", "model.position=t5"],
            "a bias by distance, which CTranslate2 computes once",
        ),
        (["model.position={name: randomized, encoding: rotary, longest: 256}"], "stand 4 apart"),
        (
            ["model.position={name: chain, parts: [{name: randomized, encoding: rotary, longest: 256}, t5]}"],
            "chain' lets positions stand 4 apart",
        ),
        (
            ["model.position={name: randomized, encoding: shaw, longest: 256, drawn: distances}"],
            "4 times as long",
        ),
        (["model.position={name: nope_hybrid, encoding: alibi}"], "has no bias in some layers"),
        (["model.decoder_layers=0", "model.head=linear"], "an encoder-only model writes no text"),
    ],
)
def test_a_combination_is_refused_in_a_sentence(make_random, components, overrides, sentence):
    with pytest.raises(ExportRefused) as refused:
        variables(make_random(*overrides), {entry.load(): entry.name for entry in ENTRIES})
    assert sentence in str(refused.value)


# ------------------------------------------------------------------------------------------------------------ strangers


class Strange(Norm):
    """Somebody's norm, which says nothing of exports."""

    def forward(self, x, valid=None, positions=None):
        return x


class Louder(MultiHead):
    """Somebody's attention on top of ours, which inherits its export and computes something else."""

    def project(self, source, info):
        kv = super().project(source, info)
        return KeyValue(kv.key, kv.value * 2.0)


class Wider(MultiHead):
    """A variant that only chooses an option: its superclass' export is right for it."""

    fixed_options = frozenset({"head_dim"})

    def __init__(self, *, d_model, **parent):
        super().__init__(d_model=d_model, head_dim=d_model // 2, **parent)


class Lying(Placement):
    """It says that it is pre-norm."""

    final_norm = True

    def wrap(self, i, x, sublayer, info):
        return self.norms[i](x + self.drops[i](sublayer(x)))

    def to_ctranslate2(self):
        return {"before": list(self.norms)}


def test_a_stranger_is_asked_for_the_method(make_random):
    model = make_random()
    model.encoder.final_norm = Strange()
    with pytest.raises(
        ExportRefused, match=r"norm 'Strange' does not say how .* write the method `to_ctranslate2\(self\)`"
    ):
        variables(model)


def test_an_inherited_export_is_not_believed(make_random):
    model = make_random()
    model.decoder.layers[0].self_attention = Louder(d_model=32, num_heads=4, dropout=0.0)
    with pytest.raises(ExportRefused, match=r"attention 'Louder' inherits .* but has its own `project`"):
        variables(model)


def test_it_is_where_only_options_were_chosen(make_random, write, codec, sentences):
    model = make_random()
    model.encoder.layers[0].self_attention = Wider(d_model=32, num_heads=4, dropout=0.0)
    model.eval()
    held, folder = write(model)
    assert held.arrays["encoder/layer_0/self_attention/head_dim"] == 16
    assert prove(model, codec, folder, held, sentences).same == len(sentences)


def test_the_proof_finds_what_computes_something_else(make_random, write, codec, sentences):
    model = make_random("model.placement=post")
    for stack in model.stacks().values():
        for layer in stack.layers:
            layer.placement.__class__ = Lying
    held, folder = write(model)
    with pytest.raises(UserError, match=r"computes something else .* of 40 greedy outputs, \d+ differ"):
        prove(model, codec, folder, held, sentences)


def test_a_tie_is_told_from_a_difference(make_random, write, codec, sentences):
    """Two words with one vector are a tie in every step; which of them is chosen is rounding's."""
    import paddle

    model = make_random("model.head={name: linear, bias: false}")
    with paddle.no_grad():
        columns = model.head.output.weight.numpy()
        # each pair of neighbours equal but for a last bit
        columns[:, 5::2] = columns[:, 4::2] * np.float32(1 + 2e-7)
        model.head.output.weight.set_value(columns)
    held, folder = write(model)
    swapped = held.arrays["decoder/projection/weight"].copy()
    swapped[4::2], swapped[5::2] = swapped[5::2].copy(), swapped[4::2].copy()
    held.arrays["decoder/projection/weight"] = swapped
    from paddle_tfm.export.spec import save

    save(held, [codec.source_vocabulary.pieces] * 2, "float32", folder)
    proof = prove(model, codec, folder, held, sentences)
    assert proof.ties > 0 and proof.same + proof.ties == len(sentences) and 0 < proof.largest_tie < 1e-4
    assert "with a tie of up to" in proof.sentence()
