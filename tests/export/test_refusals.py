"""Each component either is exported or refuses by its own name; and nothing is believed that was not compared."""

from __future__ import annotations

import types

import numpy as np
import pytest

from paddle_tfm import create_registry, hookimpl
from paddle_tfm.errors import UserError
from paddle_tfm.export.ctranslate2.rules import ExportRefused, Rules
from paddle_tfm.export.ctranslate2.variables import variables
from paddle_tfm.export.proof import prove
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import KeyValue, Norm, Placement
from paddle_tfm_plugins.attention.multihead import MultiHead

KINDS = ("attention", "norm", "placement", "position", "feed_forward", "head")
HELD = {
    "attention": {"multihead", "single_head", "grouped_query", "local", "full_width_heads", "interleaved", "lora"},
    "norm": {"layer", "rms", "scale"},
    "placement": {"pre", "post", "sandwich", "peri", "layer_scale", "steps"},
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
    "feed_forward": {"relu", "gelu", "swish", "swiglu", "geglu", "reglu"},
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
    "kimi_delta": "{encoder: multihead, decoder: {self: kimi_delta, cross: multihead}}",
    "exclusive": "{self: exclusive, cross: multihead}",
    "value_residual": "{self: value_residual, cross: multihead}",
    "canon": {"attention": "{self: canon, cross: multihead}", "feed_forward": "{name: canon, inner: relu}"},
    "merged": "{encoder: multihead, decoder: merged}",
    "convolution": "{self: convolution, cross: multihead}",
    "recurrent": "{self: recurrent, cross: multihead}",
    "synthesizer": "{self: synthesizer, cross: multihead}",
}
ENTRIES = [entry for entry in create_registry() if entry.kind in KINDS and not entry.wrong_on_purpose]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_each_component_is_held_or_refused_by_name(make_random, rules, entry):
    tied = ["model.share_embeddings=true", "vocabulary.shared=true"] if entry.name == "tied" else []
    spec = OPTIONS.get(entry.name, entry.name)
    spec = spec if isinstance(spec, str) else spec[entry.kind]
    if entry.kind == "position" and entry.name in ("xpos", "cope"):
        spec = f"{{encoder: sinusoidal, decoder: {entry.name}}}"
    model = make_random(f"model.{entry.kind}={spec}", *tied)
    if entry.name in HELD[entry.kind]:
        assert variables(model, rules).arrays
        return
    with pytest.raises(ExportRefused) as refused:
        variables(model, rules)
    kind, message = entry.kind.replace("_", "-"), str(refused.value)
    reason = HELD_IN_PART.get((entry.kind, entry.name), "has no export rule; if CTranslate2 can hold it, write one")
    assert message.startswith(f"{kind} '{entry.name}' {reason}") and len(message) < 160


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
        (["model.position={name: nope_hybrid, encoding: alibi}"], "has no bias in some layers"),
        (["model.position={name: chain, parts: [t5, fire]}"], "position 'fire' has no export rule"),
        (["model.head={name: linear, cap: 30.0}"], "head 'linear' caps its logits"),
        (["model.decoder_layers=0", "model.head=linear"], "an encoder-only model writes no text"),
    ],
)
def test_a_combination_is_refused_in_a_sentence(make_random, rules, overrides, sentence):
    with pytest.raises(ExportRefused) as refused:
        variables(make_random(*overrides), rules)
    assert sentence in str(refused.value)


# ------------------------------------------------------------------------------------------------------------ strangers


class Strange(Norm):
    """Somebody's norm, of which no plugin says anything."""

    def forward(self, x, valid=None, positions=None):
        return x


class Louder(MultiHead):
    """Somebody's attention on top of ours, which computes something else."""

    def project(self, source, info):
        kv = super().project(source, info)
        return KeyValue(kv.key, kv.value * 2.0)


class Lying(Placement):
    """Its rule says that it is pre-norm."""

    final_norm = True

    def wrap(self, i, x, sublayer, info):
        return self.norms[i](x + self.drops[i](sublayer(x)))


@pytest.fixture
def rules_with():
    """Those of ours and those of plugins of one rule each, `Class=function` or where they are."""

    def make(*plugins):
        registry = create_registry()
        for number, table in enumerate(plugins):
            plugin = types.ModuleType(f"mine{number}")
            plugin.register_ctranslate2_rules = hookimpl(lambda table=table: table)
            registry.plugins.manager.register(plugin, name=f"mine{number}")
        return Rules(registry)

    return make


def test_a_class_without_a_rule_is_refused_by_its_own_name(make_random, rules):
    model = make_random()
    model.encoder.final_norm = Strange()
    with pytest.raises(ExportRefused, match="norm 'Strange' has no export rule"):
        variables(model, rules)


def test_a_rule_is_of_exactly_its_class(make_random, write, codec, sentences, rules, rules_with):
    """A subclass has its own formula."""
    model = make_random()
    model.decoder.layers[0].self_attention = Louder(d_model=32, num_heads=4, dropout=0.0)
    model.eval()
    with pytest.raises(ExportRefused, match="attention 'Louder' has no export rule"):
        variables(model, rules)

    def louder(attention):
        value = Linear(32, 32)
        value.weight.set_value(attention.value.weight * 2.0)
        value.bias.set_value(attention.value.bias * 2.0)
        matrices = {"query": attention.query, "key": attention.key, "value": value, "output": attention.output}
        return {**matrices, "heads": 4, "kv_heads": 4, "head_dim": 8}

    held, folder = write(model, rules=rules_with({Louder: louder}))
    assert prove(model, codec, folder, held, sentences).same == len(sentences)


def test_the_proof_finds_what_computes_something_else(make_random, write, codec, sentences, rules_with):
    model = make_random("model.placement=post")
    for stack in model.stacks().values():
        for layer in stack.layers:
            layer.placement.__class__ = Lying
    held, folder = write(model, rules=rules_with({Lying: lambda placement: {"before": list(placement.norms)}}))
    with pytest.raises(ExportRefused, match=r"computes something else .* of 40 greedy outputs, \d+ differ"):
        prove(model, codec, folder, held, sentences)


def fails(norm):
    return {"gamma": norm.gain}


WRONG_RULES = {
    "two": ([{Strange: fails}, {Strange: fails}], "norm 'Strange' has export rules of 'mine0' and 'mine1'; remove"),
    "no module": ([{Strange: "nowhere:rule"}], "plugin 'mine0': the rule 'nowhere:rule' cannot be loaded: ModuleNotFound"),
    "no dictionary": ([{Strange: lambda norm: None}], "norm 'Strange' has a rule that must return a dictionary, but returns"),
    "lacks a key": ([{Strange: lambda norm: {"gamma": 1.0}}], "norm 'Strange' has a rule that must give 'eps', but gives gamma"),
    "no function": ([{Strange: 1}], "plugin 'mine0' failed to load (register_ctranslate2_rules: TypeError: must return class"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_RULES)
def test_a_wrong_rule_is_a_sentence(make_random, rules_with, wrong):
    plugins, sentence = WRONG_RULES[wrong]
    model = make_random()
    model.encoder.final_norm = Strange()
    with pytest.raises(UserError) as refused:
        variables(model, rules_with(*plugins))
    assert sentence in str(refused.value)


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
    from paddle_tfm.export.ctranslate2.spec import save

    save(held, [codec.source_vocabulary.pieces] * 2, "float32", folder)
    proof = prove(model, codec, folder, held, sentences)
    assert proof.ties > 0 and proof.same + proof.ties == len(sentences) and 0 < proof.largest_tie < 1e-4
    assert "with a tie of up to" in proof.sentence()
