"""Options that a shipped component refuses, and what is said: of every kind."""

import pytest

from paddle_tfm.errors import RecipeError
from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import LayerSite, Norm

ENCODER = LayerSite("encoder", "self", 0, 2, 2)
DECODER = LayerSite("decoder", "self", 0, 2, 2)
CROSS = LayerSite("decoder", "cross", 0, 2, 2)
GIVENS = {
    "d_model": 12, "num_heads": 2, "head_dim": 8, "d_ff": 10, "dropout": 0.0, "max_length": 64, "vocab_size": 12, "pad_id": 0,
    "unknown_id": 3, "steps": 10, "site": DECODER, "sites": [DECODER], "norm": lambda site, width: Norm(),
}  # fmt: skip
NO_WARMUP = (
    "`warmup` must be positive, as every rate is 0 without, but is 0; 1 decays from the first step on, and the schedules "
    "cosine and wsd take 0"
)
BY_OPTIONS = {
    "attention": [
        ("multihead", {"head_dim": 0}, "`head_dim` must be at least 1, but is 0"),
        ("single_head", {"head_size": 0}, "`head_size` must be at least 1, but is 0"),
        ("grouped_query", {"kv_heads": 0}, "`kv_heads` must be at least 1, but is 0"),
        ("grouped_query", {"kv_heads": 3}, "`kv_heads` must divide `num_heads`, but 3 does not divide 2"),
        ("local", {"window": 0}, "`window` must be at least 1, but is 0"),
        ("sigmoid", {"length": 0}, "`length` must be at least 1, but is 0"),
        ("canon", {"kernel": 1}, "`kernel` must be in [2, 65536], but is 1"),
        ("scalable_softmax", {"scale": 0.0}, "`scale` must be positive, but is 0"),
        ("interleaved", {"every": 0}, "`every` must be at least 1, but is 0"),
        ("mla", {"latent": 0}, "`latent` must be at least 1, but is 0"),
        ("cosine", {"length": 1}, "`length` must be at least 2, but is 1"),
        ("lora", {"rank": 0}, "`rank` must be at least 1, but is 0"),
        ("lora", {"alpha": 0.0}, "`alpha` must be positive, but is 0"),
        ("recurrent", {"hidden": 0}, "`hidden` must be at least 1, but is 0"),
        ("convolution", {"kernel": 1}, "`kernel` must be in [2, 65536], but is 1"),
        ("convolution", {"kernel": []}, "`kernel` must hold at least one width, but is empty"),
        ("synthesizer", {"hidden": 0}, "`hidden` must be at least 1, but is 0"),
        ("synthesizer", {"mode": "random", "rank": 0}, "`rank` must be at least 1, but is 0"),
        ("synthesizer", {"rank": 2}, "`rank` has no meaning with `mode` dense; leave it out"),
        ("synthesizer", {"mode": "random", "hidden": 2}, "`hidden` has no meaning with `mode` random; leave it out"),
    ],
    "norm": [
        ("seednorm", {"eps": 0.0}, "`eps` must be positive, but is 0"),
        ("gated", {"rank": 0}, "`rank` must be at least 1, but is 0"),
        ("batch", {"eps": 0.0}, "`eps` must be positive, but is 0"),
        ("batch", {"momentum": 1.5}, "`momentum` must be in (0, 1], but is 1.5"),
        ("batch", {"population": -1}, "`population` must not be negative, but is -1"),
        ("batch_per_position", {"momentum": 2.0}, "`momentum` must be in (0, 1], but is 2"),
        ("dyt", {"alpha": -0.5}, "`alpha` must be positive, but is -0.5"),
        ("group", {"groups": 24}, "`groups` must divide the width 12"),
        ("group", {"groups": 0}, "`groups` must divide the width 12"),
        ("group", {"eps": 0.0}, "`eps` must be positive, but is 0"),
        ("layer", {"eps": 0.5}, "`eps` must be in (0, 0.001], but is 0.5"),
        ("layer_std", {"eps": -1.0}, "`eps` must be positive, but is -1"),
        ("power", {"warmup": -1}, "`warmup` must not be negative, but is -1"),
        ("power", {"gradient_momentum": 0.0}, "`gradient_momentum` must be in (0, 1], but is 0"),
        ("power", {"population": -1}, "`population` must not be negative, but is -1"),
        ("rms", {"eps": 0.0}, "`eps` must be positive, but is 0"),
        ("scale", {"eps": 0.0}, "`eps` must be in (0, 1e15], but is 0"),
    ],
    "placement": [
        ("layer_scale", {"initial": 0.0}, "`initial` must be in (0, inf), but is 0.0"),
        ("keel", {"alpha": 0.0}, "`alpha` must be positive, but is 0.0"),
        ("attention_residuals", {"block": 0}, "`block` must be at least 1, but is 0"),
        ("mhc", {"streams": 0}, "`streams` must be in [1, 1000], but is 0"),
        ("mhc", {"iterations": 0}, "`iterations` must be at least 1, but is 0"),
    ],
    "position": [
        ("nope_hybrid", {"every": 1}, "`every` must be at least 2, but is 1"),
        ("nope_hybrid", {"encoding": "learned"}, "but is added to the embeddings"),
        *(("randomized", {"encoding": "sinusoidal", name: 0}, f"`{name}` must be at least 1, but is 0") for name in ("longest", "stride")),
        ("chain", {"parts": []}, "`parts` must hold at least one encoding, but is empty"),
        ("cope", {"positions": 1}, "`positions` must be in [2, 1000000], but is 1"),
        ("fire", {"width": 0}, "`width` must be at least 1, but is 0"),
        ("fire", {"threshold": -1.0}, "`threshold` must be positive, but is -1"),
        ("learned", {"initial": 0.0}, "`initial` must be"),
        ("rotary", {"base": -5.0}, "`base` must be positive, but is -5"),
        ("rotary", {"fraction": 0.4}, "`fraction` must let an even number of channels turn, but 0.4 of 8 is 3"),
        ("scaled_sinusoidal", {"base": 0.0}, "`base` must be positive, but is 0"),
        ("shaw", {"clip": 0}, "`clip` must be in [1, 1000000], but is 0"),
        ("sinusoidal", {"base": 0.0}, "`base` must be positive, but is 0"),
        ("t5", {"buckets": 7}, "`buckets` must be even, but is 7"),
        ("t5", {"buckets": 1026}, "`buckets` must be in [4, 1024], but is 1026"),
        ("t5", {"max_distance": 16}, "`max_distance` must be above 16, but is 16"),
        ("t5", {"max_distance": 1_000_001}, "`max_distance` must be in [1, 1000000], but is 1000001"),
        ("transformer_xl", {"base": 0.0}, "`base` must be positive, but is 0"),
        ("xpos", {"gamma": 0.0}, "`gamma` must be positive, but is 0"),
        ("yarn", {"factor": 0.5}, "`factor` must be at least 1, but is 0.5"),
        ("yarn", {"trained_length": 0}, "`trained_length` must be at least 1, but is 0"),
        ("yarn", {"slow": 40.0}, "`fast` must be above `slow`, but 32 is not above 40"),
        ("yarn", {"base": 1.0}, "`base` must be above 1, but is 1"),
    ],
    "feed_forward": [
        ("relu", {"inner_dropout": 1.0}, "`inner_dropout` must be in [0, 1), but is 1.0"),
        ("swiglu", {"inner_dropout": 1.0}, "`inner_dropout` must be in [0, 1), but is 1.0"),
        ("mixture_of_experts", {"top_k": 5}, "`top_k` must be in [1, 4], but is 5"),
        ("mixture_of_experts", {"balance_weight": -0.1}, "`balance_weight` must not be negative, but is -0.1"),
        ("canon", {"inner": "relu", "kernel": 1}, "`kernel` must be in [2, 65536], but is 1"),
        ("canon", {"inner": "token_shift"}, "`inner` must be a feed-forward of each token by itself, but reads those before"),
        ("deepseek_moe", {"top_k": 0}, "`top_k` must be in [1, 8], but is 0"),
        ("deepseek_moe", {"shared": -1}, "`shared` must be in [0, 10000], but is -1"),
        ("deepseek_moe", {"bias_rate": -0.1}, "`bias_rate` must not be negative, but is -0.1"),
        ("deepseek_moe", {"sequence_balance_weight": -1.0}, "`sequence_balance_weight` must not be negative, but is -1.0"),
    ],
    "head": [
        ("adaptive", {"cutoffs": [4, 4]}, "`cutoffs` must rise from 1 on, but is [4, 4]"),
        ("adaptive", {"factor": 0}, "`factor` must be at least 1, but is 0"),
        ("fix", {"scale": -1.0}, "`scale` must be positive, but is -1"),
        ("pointer_coverage", {"coverage_weight": -1.0}, "`coverage_weight` must not be negative"),
    ],
    "initializer": [
        ("gpt2", {"std": -1.0}, "`std` must be positive, but is -1.0"),
        ("mup", {"base_width": 0}, "`base_width` must be positive, but is 0"),
        ("normal", {"std": 0.0}, "`std` must be positive, but is 0.0"),
        ("uniform", {"low": 0.1}, "`low` must be below `high`, but 0.1 is not below 0.1"),
    ],
    "schedule": [
        ("constant", {"learning_rate": 0.0}, "`learning_rate` must be positive, but is 0.0"),
        ("noam", {"warmup": 0}, NO_WARMUP),
        ("noam", {"factor": -1.0}, "`factor` must be positive, but is -1.0"),
        ("inverse_sqrt", {"warmup": 0}, NO_WARMUP),
        ("inverse_sqrt", {"peak": 0.0}, "`peak` must be positive, but is 0.0"),
        ("cosine", {"warmup": -1}, "`warmup` must not be negative, but is -1"),
        ("cosine", {"peak": 0.1, "floor": 0.2}, "`floor` must not be above `peak`, but 0.2 is above 0.1"),
        ("wsd", {"decay": 1.5}, "`decay` must be in [0, 1], but is 1.5"),
        ("wsd", {"floor": -0.1}, "`floor` must not be negative, but is -0.1"),
    ],
    "optimizer": [
        ("adam", {"beta1": 1.0}, "`beta1` must be in [0, 1), but is 1.0"),
        ("adam", {"epsilon": 0.0}, "`epsilon` must be positive, but is 0.0"),
        ("adamw", {"beta2": -0.1}, "`beta2` must be in [0, 1), but is -0.1"),
        ("adamw", {"weight_decay": -1.0}, "`weight_decay` must not be negative, but is -1.0"),
        ("adafactor", {"decay": 0.0}, "`decay` must be in (0, 1], but is 0.0"),
        ("adafactor", {"clip": 0.0}, "`clip` must be positive, but is 0.0"),
        ("adafactor", {"epsilon1": 0.0}, "`epsilon1` must be positive, but is 0.0"),
        ("adafactor", {"epsilon2": -1.0}, "`epsilon2` must be positive, but is -1.0"),
        ("lion", {"beta2": -0.1}, "`beta2` must be in [0, 1), but is -0.1"),
        ("lion", {"weight_decay": -1.0}, "`weight_decay` must not be negative, but is -1.0"),
        ("muon", {"momentum": 1.0}, "`momentum` must be in [0, 1), but is 1.0"),
        ("muon", {"iterations": 0}, "`iterations` must be in [1, 100], but is 0"),
        ("normuon", {"neuron_beta": 1.0}, "`neuron_beta` must be in [0, 1), but is 1.0"),
        ("cautious_adamw", {"weight_decay": -1.0}, "`weight_decay` must not be negative, but is -1.0"),
        ("radam", {"beta2": 1.0}, "`beta2` must be in [0, 1), but is 1.0"),
    ],
    "tokenizer": [
        ("sentencepiece", {"size": 0}, "`size` must be at least 1, but is 0"),
        ("sentencepiece", {"max_sentences": 0}, "`max_sentences` must be at least 1, but is 0"),
        ("sentencepiece", {"character_coverage": 0.0}, "`character_coverage` must be in (0, 1], but is 0.0"),
        ("sentencepiece", {"sampling": -0.1}, "`sampling` must be at least 0 and finite, but is -0.1"),
        ("sentencepiece", {"sampling": 1.5, "model": "bpe"}, "`sampling` must be between 0 and 1 with `model` bpe, but is 1.5"),
        *(("space", {"separator": wrong}, "`separator` must be what ends a piece, without white space") for wrong in ("", "@ @")),
    ],
    "search": [
        ("sampling", {"temperature": 0.0}, "`temperature` must be a number above 0, but is 0.0; `greedy` is its limit at 0"),
        ("sampling", {"top_k": 0}, "`top_k` must be at least 1, but is 0"),
        ("sampling", {"top_p": 0.0}, "`top_p` must be in (0, 1], but is 0.0"),
        ("sampling", {"samples": 0}, "`samples` must be in [1, 10000], but is 0"),
    ],
    "metric": [
        ("bleu", {"tokenize": "13"}, "`tokenize` must be one of 13a, char, intl, none, zh, but is '13'; did you mean '13a'?"),
        ("bleu", {"smooth": "addk"}, "`smooth` must be one of add-k, exp, floor, none, but is 'addk'; did you mean 'add-k'?"),
        ("bleu", {"tokenize": "spm"}, "`tokenize` 'spm' needs a download or another package; use one of 13a, char, intl, none, zh"),
        ("chrf", {"char_order": 0}, "`char_order` must be at least 1, but is 0"),
        ("chrf", {"word_order": -1}, "`word_order` must not be negative, but is -1"),
        ("chrf", {"beta": 0}, "`beta` must be at least 1, but is 0"),
        ("ter", {"asian_support": True}, "`asian_support` needs `normalized` or `no_punct`: alone it changes nothing"),
        ("word_error_rate", {"per": "lines"}, "metric.per  must be 'word' or 'line', but is 'lines'"),
    ],
    "executor": [
        ("command", {"template": "sbatch"}, "`template` must hold {cell}, where the command of a run goes, but is 'sbatch'"),
        ("command", {"template": "bash -c '{cell}"}, "`template` is no line for a shell: No closing quotation"),
        ("command", {"at_once": 0}, "`at_once` must be positive, but is 0"),
        *(("ray", {name: value}, f"`{name}` must") for name, value in (("num_cpus", 0), ("num_gpus", -1), ("retries", -1), ("at_once", -1))),
    ],
    "task": [
        ("copy", {"min_length": 0}, "`min_length` must be positive, but is 0"),
        ("copy", {"min_length": 4, "max_length": 3}, "`min_length` must not be above `max_length`, but 4 is above 3"),
        ("copy", {"symbols": 2, "min_length": 1, "max_length": 5}, "`symbols` and the lengths must allow 100 sequences or more, but allow 62"),
        ("copy", {"symbols": 0}, "`symbols` must be positive, but is 0"),
        ("dates", {"train": 0}, "`train` must be positive, but is 0"),
        ("dates", {"first_year": 999}, "`first_year` must be in [1000, 9999], but is 999"),
        ("dates", {"last_year": 1949}, "`first_year` must not be above `last_year`, but 1950 is above 1949"),
        ("names", {"valid": 0}, "`valid` must be positive, but is 0"),
        ("questions", {"valid": 0}, "`valid` must be positive, but is 0"),
        ("questions", {"facts": 33}, "`facts` must be in [2, 32], but is 33"),
    ],
}  # fmt: skip
REQUIRED = {"name": "randomized", "encoding": "sinusoidal"}
BY_GIVENS = [  # what the rest of the recipe has, and this component cannot use
    *(
        ("attention", name, {"num_heads": 8}, "`num_heads` must divide `d_model`, but 8 does not divide 12")
        for name in ("multihead", "grouped_query", "linear", "mla", "differential", "convolution", "synthesizer")
    ),
    ("attention", "multihead", {"num_heads": 0}, "`num_heads` must be at least 1, but is 0"),
    ("attention", "full_width_heads", {"num_heads": 0}, "`num_heads` must be at least 1, but is 0"),
    ("attention", "multihead", {"dropout": 1.5}, "`rate` must be in [0, 1), but is 1.5"),
    ("attention", "mla", {"num_heads": 12}, "`rotary_dim` must be at least 1, but is 0"),
    ("attention", "exclusive", {"num_heads": 12}, "`head_dim` must be at least 2, but is 1"),
    ("attention", "differential", {"num_heads": 3}, "`num_heads` must be even, for a head has two softmaxes, but is 3"),
    ("attention", "synthesizer", {"max_length": 0}, "`max_length` must be at least 1, but is 0"),
    ("attention", "recurrent", {"site": CROSS}, "it reads one text in its order, and cannot attend to another"),
    ("attention", {"name": "recurrent", "hidden": 5}, {"site": ENCODER}, "`hidden` must be even where a text is read in two directions, but is 5"),
    ("attention", {"name": "convolution", "kernel": [3, 4]}, {"site": ENCODER}, "`kernel` must be odd where it is centred, but is 4"),
    ("attention", "convolution", {"site": CROSS}, "a token of one text has no neighbours in another"),
    ("attention", "synthesizer", {"site": CROSS}, "which says nothing about a source and its target"),
    ("attention", "local", {"site": CROSS}, "a window needs one text: positions of source and target have no distance"),
    ("attention", "canon", {"site": CROSS}, "in cross-attention queries and keys are two texts; choose it for self-attention alone"),
    ("attention", "exclusive", {"site": CROSS}, "it takes a token's own value out, and in cross-attention all values are another text's"),
    ("attention", "value_residual", {"site": CROSS}, "it mixes in values of the first layer, and in cross-attention all layers make theirs of one text"),
    ("attention", "merged", {"site": ENCODER}, "it merges self- and cross-attention, and only a decoder beside an encoder has both"),
    *(
        ("attention", name, {"site": site}, "so it must stand in a decoder's self-attention")
        for name in ("forgetting", "gated_deltanet")
        for site in (ENCODER, CROSS)
    ),
    ("norm", "layer_std", {"d_model": 1}, "`d_model` must be at least 2"),
    ("norm", "batch_per_position", {"max_length": 0}, "`max_length` must be at least 1, but is 0"),
    ("position", "alibi", {"num_heads": 0}, "`num_heads` must be at least 1, but is 0"),
    ("position", "cope", {"site": ENCODER}, "encoder.self also looks ahead"),
    ("position", "learned", {"max_length": 0}, "`max_length` must be at least 1, but is 0"),
    ("position", REQUIRED, {"site": CROSS}, "cross-attention draws no positions"),
    ("position", "rotary", {"head_dim": 7}, "`head_dim` must be even, but is 7"),
    ("position", "xpos", {"head_dim": 7}, "`head_dim` must be even, but is 7"),
    ("position", "xpos", {"site": ENCODER}, "grow towards the future, which encoder.self sees"),
    ("position", "xpos", {"site": CROSS}, "grow towards the future, which decoder.cross sees"),
    ("position", "yarn", {"head_dim": 7}, "`head_dim` must be even, but is 7"),
]  # fmt: skip


def refused(registry, kind, spec, sentence, **givens):
    every = {**GIVENS, "embedding": Embedding(12, 12, 0, 3), **givens}
    if kind == "attention":
        del every["head_dim"]  # an option of theirs
    with pytest.raises(RecipeError) as caught:
        registry.build(kind, spec, **every)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "kind, name, options, sentence", [(kind, *row) for kind, rows in BY_OPTIONS.items() for row in rows], ids=str
)
def test_an_option_out_of_its_range_is_refused(registry, kind, name, options, sentence):
    refused(registry, kind, {"name": name, **options}, sentence)


@pytest.mark.parametrize("kind, spec, givens, sentence", BY_GIVENS, ids=str)
def test_what_stands_where_it_cannot_is_refused(registry, kind, spec, givens, sentence):
    refused(registry, kind, spec, sentence, **givens)
