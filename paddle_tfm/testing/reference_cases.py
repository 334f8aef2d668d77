"""What a component computes on random inputs, and all that a reference may want to know of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.subject import Subject

WIDTHS = ((12, 3), (12, 4), (16, 4), (16, 2))  # (d_model, heads), until the component takes one
# So many heads that groups of them are several, of several heads each, and wider: of 4 channels D ** -0.5 is 2 / D,
# and 2 i / D is i / 2.
MANY_HEADS = ((40, 4), (60, 6), (32, 4), (64, 8), (16, 4))
D_FF, VOCABULARY, MAX_LENGTH = 10, 13, 96
DEPTHS = {"encoder": 3, "decoder": 5}  # of two layers 2 N, N ** 2 and N + 2 are one number
RUNS = ((64, 500), (96, 300))  # (d_model, steps)
LENGTHS = ((5, 3, 1), (1,), (70,))  # of the sentences of a batch
SOURCE_LENGTHS = ((2, 7, 4), (3,), (33,))  # of what is looked at across
SPREAD = 0.6  # of parameters, so that none stays at an initial zero


@dataclass
class Case:
    """One call: `inputs` are float64 and get gradients, `facts` is what a reference may ask for, `real` which of
    the output's [B, T] are compared (None: all of it)."""

    what: str
    layer: nn.Layer | None
    ours: Callable[[dict[str, Tensor]], Tensor]
    inputs: dict[str, np.ndarray]
    facts: dict[str, object] = field(default_factory=dict)
    real: np.ndarray | None = None
    function: str = "forward"


def functions_of(kind: str, component: str) -> tuple[str, ...]:
    """Names of the functions that say what a component of this kind computes.

    Raises:
        UserError: components of this kind are not compared with a reference.
    """
    if kind not in CASES:
        raise UserError(f"--reference compares {', '.join(CASES)}; {component} is none of them")
    return FUNCTIONS.get(kind, ("forward",))


def cases(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    """All calls of a component; `functions` are the names that the reference has."""
    yield from CASES[subject.kind](subject, functions, rng)


def built(
    subject: Subject, site: LayerSite | None, rng: np.random.Generator, widths=WIDTHS, **kwargs: object
) -> tuple[nn.Layer, dict]:
    """The component at the first of these widths that it takes, its parameters drawn, in evaluation; and what it was
    built with."""
    error = None
    for d_model, heads in widths:
        size = {"d_model": d_model, "num_heads": heads, "head_dim": d_model // heads, "d_ff": D_FF, **kwargs}
        try:
            layer = subject.build(site, **{"max_length": MAX_LENGTH, **size})
        except RecipeError as refusal:
            error = error or refusal
            continue
        for parameter in layer.parameters():
            value = rng.normal(scale=SPREAD, size=parameter.shape)
            parameter.set_value(value.astype(str(parameter.dtype).removeprefix("paddle.")))
        layer.eval()
        return layer, {**size, "heads": heads, "max_length": MAX_LENGTH, "site": site}
    raise error if error is not None else UserError(f"{subject} cannot be built")


def of_few_and_many_heads(
    subject: Subject, site: LayerSite, rng: np.random.Generator
) -> Iterator[tuple[nn.Layer, dict]]:
    """The component at a width that it takes, and again with more and wider heads: where groups of heads are several,
    of several each, their order shows, and where a head has several pairs of channels, exponents and scales do."""
    layer, size = built(subject, site, rng)
    yield layer, size
    if size["heads"] < MANY_HEADS[0][1]:
        try:
            more = built(subject, site, rng, MANY_HEADS)
        except RecipeError:
            return
        yield more


def valid_of(lengths: Sequence[int]) -> np.ndarray:
    """bool [B, longest]."""
    return np.arange(max(lengths)) < np.array(lengths)[:, None]


def token_info(valid: np.ndarray, encoding: PositionalEncoding | None = None) -> TokenInfo:
    positions = paddle.arange(valid.shape[1], dtype="int64").unsqueeze(0)
    return TokenInfo(encoding or PositionalEncoding(), positions, paddle.to_tensor(valid))


def _texts(lengths: Sequence[int], width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict]:
    """x [B, T, C], valid [B, T], and facts about them."""
    valid = valid_of(lengths)
    at = np.arange(valid.shape[1])
    return rng.normal(size=(*valid.shape, width)), valid, {"valid": valid, "positions": at, "at": at}


def _norm(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    layer, size = built(subject, subject.site(), rng)
    for lengths in LENGTHS:
        x, valid, facts = _texts(lengths, size["d_model"], rng)
        info = token_info(valid)

        def ours(inputs: dict[str, Tensor], info: TokenInfo = info) -> Tensor:
            return layer(inputs["x"], info.valid, info.positions)

        yield Case(f"lengths {_listed(lengths)}", layer, ours, {"x": x}, {**size, **facts}, valid)


def _feed_forward(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    layer, size = built(subject, subject.site(), rng)
    for lengths in LENGTHS:
        x, valid, facts = _texts(lengths, size["d_model"], rng)
        info = token_info(valid)

        def ours(inputs: dict[str, Tensor], info: TokenInfo = info) -> Tensor:
            return layer(inputs["x"], info, Tap())

        yield Case(f"lengths {_listed(lengths)}", layer, ours, {"x": x}, {**size, **facts}, valid)


def _attention(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    for name in subject.site_names:
        site = subject.site(name)
        every = itertools.product(of_few_and_many_heads(subject, site, rng), zip(LENGTHS, SOURCE_LENGTHS))
        for (layer, size), (lengths, across) in every:
            x, valid, facts = _texts(lengths, size["d_model"], rng)
            source, source_valid = x, valid
            if site.sublayer == "cross":
                source, source_valid, _ = _texts((across * len(lengths))[: len(lengths)], size["d_model"], rng)
            here, there = token_info(valid), token_info(source_valid)
            mask = Mask(here.positions, there.positions, there.valid, site.causal, here.encoding)
            shape = [len(lengths), valid.shape[1], source_valid.shape[1]]
            allowed = mask.allowed()[:, 0].expand(shape).numpy()
            facts |= {"allowed": allowed, "mask": allowed, "source_valid": source_valid, "causal": site.causal}

            def ours(inputs: dict[str, Tensor], layer=layer, here=here, there=there, mask=mask) -> Tensor:
                source = inputs.get("source", inputs["x"])
                return layer(inputs["x"], layer.project(source, there), here, mask, Tap())

            inputs = {"x": x} if source is x else {"x": x, "source": source}
            what = f"{name}, {size['heads']} heads, lengths {_listed(lengths)}"
            yield Case(what, layer, ours, inputs, {**size, **facts}, valid)


def _position(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    for name in subject.site_names:
        for (encoding, size), length in itertools.product(
            of_few_and_many_heads(subject, subject.site(name), rng), (5, 70)
        ):
            size["causal"] = subject.site(name).causal
            at = np.arange(length)
            ids = paddle.to_tensor(at[None])
            facts = {**size, "positions": at, "at": at, "q_positions": at, "k_positions": at}
            what = f"{name}, {size['heads']} heads, positions 0 … {length - 1}"
            if "embed" in encoding.uses() and {"embed", "forward"} & set(functions):
                x = rng.normal(size=(2, length, size["d_model"]))
                function = "embed" if "embed" in functions else "forward"

                def embedded(inputs: dict[str, Tensor], encoding=encoding, ids=ids) -> Tensor:
                    return encoding.embed(inputs["x"], ids)

                yield Case(f"{what}, embed", encoding, embedded, {"x": x}, facts, function=function)
            if "bias" in encoding.uses() and "bias" in functions:

                def biased(inputs: dict[str, Tensor], encoding=encoding, ids=ids) -> Tensor:
                    return encoding.bias(ids, ids)[0]

                yield Case(f"{what}, bias", encoding, biased, {}, facts, function="bias")
            if "attend" in functions or ("forward" in functions and encoding.uses() - {"embed"}):
                yield _attended(encoding, ids, what, facts, "attend" if "attend" in functions else "forward", rng)


def _attended(encoding, ids: Tensor, what: str, facts: dict, function: str, rng: np.random.Generator) -> Case:
    """Softmax attention of one sentence under the encoding: a reference attend(h, q, k, v, allowed, w) → [T, D] says it
    for head h, q, k and v [T, D]."""
    heads, length = facts["heads"], ids.shape[1]
    inputs = {name: rng.normal(size=(heads, length, facts["head_dim"])) for name in ("q", "k", "v")}
    mask = Mask(ids, ids, paddle.ones([1, length], "bool"), facts["causal"], encoding)

    def ours(tensors: dict[str, Tensor]) -> Tensor:
        q, k = encoding.query(tensors["q"][None], ids), encoding.key(tensors["k"][None], ids)
        scores = paddle.matmul(q, k, transpose_y=True)
        relative = encoding.scores(q, k, ids, ids)
        scores = (scores if relative is None else scores + relative) * facts["head_dim"] ** -0.5
        weights = F.softmax(mask.add_to(scores), -1)
        term = encoding.values(weights, ids, ids)
        context = paddle.matmul(weights, tensors["v"][None])
        return (context if term is None else context + term)[0]

    allowed = mask.allowed()[0, 0].expand([length, length]).numpy()
    return Case(
        f"{what}, attention", encoding, ours, inputs, {**facts, "allowed": allowed, "h": "each"}, function=function
    )


def _head(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    size = {"vocab_size": VOCABULARY, "pad_id": 0, "unknown_id": 3, "embedding": None}
    layer, built_with = built(subject, None, rng, **size)
    x, valid, facts = _texts(LENGTHS[0], built_with["d_model"], rng)
    facts |= {**size, **built_with, "V": VOCABULARY}
    function = "log_probs" if "log_probs" in functions else "forward"
    yield Case("log_probs", layer, lambda inputs: layer.log_probs(inputs["h"], None), {"h": x}, facts, valid, function)
    if "loss" in functions:
        target = rng.integers(1, VOCABULARY, valid.shape)
        ids = paddle.to_tensor(target)
        for smoothing in (0.0, 0.1):

            def loss(inputs: dict[str, Tensor], smoothing: float = smoothing) -> Tensor:
                return layer.loss(inputs["h"], ids, None, smoothing)

            more = {**facts, "target": target, "smoothing": smoothing}
            yield Case(f"loss, label smoothing {smoothing:g}", layer, loss, {"h": x}, more, valid, "loss")


class _Plain(nn.Layer):
    """(x − mean) / deviation of each token: the norm that a placement gets."""

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / paddle.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-6)


def plain_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-6)


def _placement(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    for stack in dict.fromkeys(name.split(".")[0] for name in subject.site_names):
        names = ["self", "cross", "feed_forward"] if stack == "decoder" else ["self", "feed_forward"]
        for number in range(DEPTHS[stack]):
            sites = [LayerSite(stack, name, number, DEPTHS["encoder"], DEPTHS["decoder"]) for name in names]
            layer, size = built(subject, None, rng, sites=sites, norm=lambda site, width: _Plain())
            weights = [rng.normal(size=(size["d_model"],) * 2) * 0.3 for _ in names]
            x, valid, facts = _texts(LENGTHS[0], size["d_model"], rng)
            branches = [lambda y, weight=weight: paddle.tanh(y @ paddle.to_tensor(weight)) for weight in weights]
            theirs = [lambda y, weight=weight: np.tanh(y @ weight) for weight in weights]
            info = token_info(valid)

            def ours(inputs: dict[str, Tensor], layer=layer, branches=branches, info=info) -> Tensor:
                return layer(inputs["x"], branches, info)

            facts |= {
                **size,
                "sublayers": theirs,
                "norm": plain_norm,
                "layer": number,
                "layers": DEPTHS[stack],
                "encoder_layers": DEPTHS["encoder"],
                "decoder_layers": DEPTHS["decoder"],
                "stack": stack,
            }
            yield Case(f"{stack}, layer {number}", layer, ours, {"x": x}, facts, valid)


def _schedule(subject: Subject, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    for d_model, steps in RUNS:
        schedule, middle = subject.build(d_model=d_model, steps=steps), steps // 2
        for step in (1, 2, 10, 100, middle - 1, middle, middle + 1, steps - 1, steps):
            rate = paddle.to_tensor(np.array([schedule(step)]))

            def ours(inputs: dict[str, Tensor], rate: Tensor = rate) -> Tensor:
                return rate

            facts: dict[str, object] = {"step": step, "steps": steps, "d_model": d_model}
            yield Case(f"step {step} of {steps}, d_model {d_model}", None, ours, {}, facts)


def _listed(lengths: Sequence[int]) -> str:
    return ", ".join(map(str, lengths))


CASES = {
    "norm": _norm,
    "feed_forward": _feed_forward,
    "attention": _attention,
    "position": _position,
    "head": _head,
    "placement": _placement,
    "schedule": _schedule,
}
FUNCTIONS = {"position": ("forward", "embed", "bias", "attend"), "head": ("forward", "log_probs", "loss")}
