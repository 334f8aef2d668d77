"""What several checks that fail together have in common: the first line of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paddle_tfm.language import _
from paddle_tfm.testing.results import NOT_FINITE

TOKEN_WISE = ("norm", "feed_forward", "placement", "head")  # kinds in which no token sees another


@dataclass(frozen=True)
class Cause:
    """`fails`: checks that all fail where it is the cause. `kinds`: of these components; (): of all. `seen`: words that
    the first of these checks says, or the first that failed. `beside`: nothing else makes these checks fail, so that it
    is said beside another cause too."""

    fails: tuple[str, ...]
    sentence: str
    kinds: tuple[str, ...] = ()
    seen: str = ""
    beside: bool = False


MORE_THAN_POSITIONS = (
    "it is computed from more than the positions of a query and a key: the length of a tensor, the last position, or "
    "an earlier call"
)
MIXED_SENTENCES = (
    "sentences of a batch are mixed: [B, T] taken for [T, B], a reshape, or a softmax or statistic over the batch"
)
MIXED_TOKENS = "tokens are mixed up: a reshape takes heads for positions, or weights are shifted against their keys"
# What the first failure says, and what is behind it
ERRORS = {
    NOT_FINITE: "NaN or infinity: a logarithm or root of a negative number, a division by 0, exp of a large number",
    "Tensor holds no memory": "a tensor that is kept is empty when it is read again, as a gradient is after "
    "`clear_grad`: keep a copy of it (`gradient.clone()`)",
}
# The first that fits: what explains more stands before what explains less
CAUSES = (
    Cause(
        ("inputs_unchanged",),
        "an input is changed in place: by a method that ends with `_`, or an assignment such as `x[:, 0] = …`",
    ),
    Cause(
        ("registered",),
        "a parameter is made in `forward`, at its first call: make it in the constructor, where the optimizer, the "
        "initializer and loading can see it",
        seen="exists only after",
    ),
    Cause(
        ("invariances",),
        "it does not normalize: it multiplies by its input's size, where it should divide",
        seen="twice as large",
    ),
    Cause((), ERRORS[NOT_FINITE], seen=NOT_FINITE),
    Cause(
        ("deterministic",),
        "the layer keeps something from one call to the next, in evaluation too: a statistic that is updated, a count",
        seen="two that are new compute the same",
    ),
    Cause(
        ("deterministic",),
        "a dropout of its own, which does not ask `self.training` (a functional one has `training=True`), or noise",
        seen="in evaluation",
    ),
    Cause(
        ("repeatable",),
        "numbers are drawn that the seed does not decide, in the constructor or in `forward`, or are copied from a "
        "parameter before it has its initial values",
    ),
    Cause(
        ("registered", "trains"),
        "a layer or parameter is hidden from Paddle: in a plain list or dictionary, or as a tensor that is no "
        "parameter",
    ),
    Cause(
        ("registered", "saved"),
        "a tensor that belongs to the state is kept outside of it: in a plain list or dictionary, or as no parameter",
    ),
    Cause(
        ("attends",),
        "it looks at the wrong text: keys and values must come from the text that is attended to; whether that is the "
        "queries' own is told by `site`, not by shapes",
        ("attention",),
        "another text",
    ),
    Cause(("pure", "padding"), MORE_THAN_POSITIONS),
    Cause(
        ("pure", "neighbours", "positions_differ"),
        "the axis of the batch is taken for that of positions, [B, T] for [T, B]",
    ),
    Cause(("pure",), MORE_THAN_POSITIONS),
    Cause(
        ("sums_to_one",),
        "log-probabilities are not normalized over the words: the axis of the softmax, a word that is counted twice, "
        "or one that is overwritten where it stands twice in the source",
    ),
    Cause(
        ("causal", "stateless"),
        "statistics of the batch are used, and updated, in evaluation too: ask `self.training`",
        ("norm",),
    ),
    Cause(
        ("causal", "padding"),
        "a mean, a sum, a softmax or an index runs over the tokens, where each stands for itself",
        TOKEN_WISE,
    ),
    Cause(("causal",), "a later token influences an earlier one: a shift, a sum or an index over T", TOKEN_WISE),
    Cause(("neighbours", "causal"), MIXED_SENTENCES, seen="with other neighbours"),
    Cause(("causal", "padding", "bidirectional"), MIXED_TOKENS),
    Cause(("causal", "padding"), MIXED_TOKENS, seen="and not to"),
    Cause(
        ("causal", "padding", "averages"),
        "the softmax runs over another axis than the keys, or weights are changed after it",
    ),
    Cause(
        ("causal", "padding"),
        "queries attend to masked keys: the mask is missing, inverted, or applied after the softmax; or a mean or"
        " sum runs over all tokens",
    ),
    Cause(
        ("causal",),
        "the future is visible: the causal mask is transposed, off by one or missing, or a sum runs over later tokens",
    ),
    Cause(
        ("causal_in_training",),
        "in training, a statistic runs over all tokens of the batch, later ones and padding too, as in BatchNorm",
    ),
    Cause(("padding",), "padding takes part in a mean or sum: leave out what is not valid", TOKEN_WISE),
    Cause(
        ("padding",),
        "padding is seen: the mask of keys is inverted, or left out in the encoder or in cross-attention, or a sum, a "
        "mean or an order counts padding",
    ),
    Cause(
        ("stateless",),
        "the layer keeps something from one call to the next, such as what it computed for the same shape before; "
        "what a step needs of earlier ones belongs into what `project` returns",
    ),
    Cause(("neighbours",), MIXED_SENTENCES),
    Cause(
        ("cached",),
        "a call with one token takes another path than one with several, and omits something, such as the mask",
        seen="two at a time are right",
    ),
    Cause(
        ("cached",),
        "a step has other inputs than the full pass: `extend` of the cache drops or repeats tokens, or positions "
        "and distances are counted from a tensor's length instead of `info.positions`",
        ("attention",),
    ),
    Cause(
        ("cached",),
        "something depends on the number of tokens in a call: positions counted from a tensor's length",
    ),
    Cause(
        ("identity_path",),
        "the residual does not pass: `x +` is missing or adds another x, or a norm or dropout stands around the sum",
    ),
    Cause(("each_branch_once",), "a sublayer is left out, called twice, or its output is not added"),
    Cause(
        ("newest_word", "residual"),
        "the target is shifted to the right twice: `target_in` comes shifted, with the begin token first",
    ),
    Cause(("newest_word",), "a position does not see the word that stands there: a shift, or a mask that is one off"),
    Cause(("trains", "own_norms"), "one norm stands at several sublayers, and the others are never used"),
    Cause(
        ("gradients",),
        "numbers are rounded on the way, to half precision or to whole numbers: small changes are lost, and gradients "
        "say nothing of it",
        seen="numbers are rounded on the way",
    ),
    Cause(
        ("averages", "bidirectional"),
        "keys are processed in blocks, and earlier sums are not rescaled to a new maximum",
        ("attention",),
        "160 keys",
    ),
    Cause(
        ("trains", "gradients"),
        "the graph is cut: by `detach`, NumPy, `no_grad`, an argmax, or a backward of its own",
    ),
    Cause(
        ("evaluation",),
        "a dropout of its own, which does not ask `self.training`",
        seen="evaluated twice: they differ",
        beside=True,
    ),
    Cause(
        ("relative",),
        "queries and keys are not turned alike: one of them not at all, the other way round, or by other positions",
    ),
    Cause(
        ("positions_differ", "rows_reached"),
        "positions share rows of a table: they are taken modulo something, divided or clipped too early",
    ),
    Cause(
        ("far_positions",),
        "positions are clipped, or are rows of a table, up to a length that is not `max_length`",
        ("position",),
        "all get the same",
    ),
    Cause(
        ("far_positions",),
        "positions or angles are rounded where they are large: to bfloat16 or float16, as under mixed precision",
        ("position",),
        "two or more get the same",
    ),
    Cause(
        ("learned_again",),
        "a cache of cut texts is not emptied by `fit` or `load`",
        ("tokenizer",),
        "and cut some",
    ),
    Cause(
        ("order",),
        "means of batches are averaged: sum over all examples, and divide once",
        ("metric",),
        "151 examples",
    ),
    Cause(
        ("order",),
        "a result for one example is reused for another, kept by its output or source alone",
        ("metric",),
        "after other examples",
    ),
    Cause(
        ("positions_differ", "order_matters"),
        "positions have no effect: all get the same numbers, or these reach neither embeddings nor scores",
    ),
    Cause(
        ("extremes", "half_precision"),
        "numbers overflow: exp without subtracting the maximum, a square, or a constant beyond half precision",
    ),
)


def cause_of_error(detail: str) -> str:
    """What is behind an error, or a number that is none; "" where that is not known."""
    return next((_(sentence) for text, sentence in ERRORS.items() if text in detail), "")


def cause_of(kind: str, details: Mapping[str, str], known: str = "") -> str:
    """The first cause that explains the failures of a component, check -> what was seen, in words, and those that are
    there beside it; "" where none does. `known`: what is known already, in the first one's place."""
    names: dict[str, str] = {}
    for name, detail in details.items():
        names.setdefault(detail, name)  # one error that ends several checks is one failure
    first, *_rest = [*names, ""]
    if sentence := "" if NOT_FINITE in first else cause_of_error(first):
        return sentence
    fitting = [
        cause
        for cause in CAUSES
        if {*names.values()} >= {*cause.fails}
        and (not cause.kinds or kind in cause.kinds)
        and cause.seen in (details[cause.fails[0]] if cause.fails else first)
    ]
    main = known or _(next((cause.sentence for cause in fitting), ""))
    others = [_(cause.sentence) for cause in fitting if cause.beside]
    return "; ".join(dict.fromkeys([main, *others])) if main else ""
