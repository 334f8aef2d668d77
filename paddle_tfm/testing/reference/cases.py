"""What a component computes on random inputs, and all that a reference may want to know of it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.data.vocabulary import EOS, PAD, SPECIAL, UNKNOWN
from paddle_tfm.errors import UserError
from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import LayerSite, Mask, Memory, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.reference.case import Case, built, of_few_and_many_heads

DEPTHS = {"encoder": 3, "decoder": 5}  # of two layers 2 N, N ** 2 and N + 2 are one number
TEXTS = (5, 70)  # positions
FAR = (0, 1, 3, 9, 40, 130, 200, 511, 513, 1500)  # where buckets are wide, waves have gone round, and tables may end
ASKED = frozenset({"positions", "at", "q_positions", "k_positions"})
RUNS = ((64, 500), (96, 300), (128, 20_000))  # (d_model, steps)
LENGTHS = ((5, 3, 1), (1,), (70,))  # of the sentences of a batch
SOURCE_LENGTHS = ((2, 7, 4), (3,), (33,))  # of what is looked at across
TOKENS = ("sentence", "position", "channel")
SMALL = 1e-3  # of numbers whose mean square is about ε: it shows whether ε stands inside the root
VOCABULARY, EXTRA = 13, 2  # words of the target, and of the source beyond them


def functions_of(kind: str, component: str) -> tuple[str, ...]:
    """Names of the functions that say what a component of this kind computes.

    Raises:
        UserError: components of this kind are not compared with a reference.
    """
    if kind not in CASES:
        raise UserError(f"--reference compares {', '.join(CASES)}; {component} is none of them")
    return ("forward", *FUNCTIONS.get(kind, ()))


def functions_of_installed(kind: str) -> tuple[str, ...]:
    """Names of the functions of a component that is the reference."""
    return FUNCTIONS.get(kind, ("forward",))


def token_info(valid: np.ndarray) -> TokenInfo:
    positions = paddle.arange(valid.shape[1], dtype="int64").unsqueeze(0)
    return TokenInfo(PositionalEncoding(), positions, paddle.to_tensor(valid))


def _texts(lengths: Sequence[int], width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict]:
    """x [B, T, C], valid [B, T], and facts about them."""
    valid = np.arange(max(lengths)) < np.array(lengths)[:, None]
    at = np.arange(valid.shape[1])
    return rng.normal(size=(*valid.shape, width)), valid, {"valid": valid, "positions": at, "at": at}


def _norm(subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    layer, size = built(subject, subject.site(), rng)
    texts = [(lengths, 1.0) for lengths in LENGTHS] + [(LENGTHS[0], SMALL)]
    for (lengths, scale), training in itertools.product(texts, (False, True)):
        x, valid, facts = _texts(lengths, size["d_model"], rng)
        info = token_info(valid)

        def call(norm, inputs: dict[str, Tensor], info: TokenInfo = info, training: bool = training) -> Tensor:
            norm.train() if training else norm.eval()
            return norm(inputs["x"], info.valid, info.positions)

        what = (
            f"lengths {_listed(lengths)}"
            + f", numbers of about {scale:g}, where ε acts" * (scale < 1.0)
            + ", in training" * training
        )
        asks = frozenset({"training"} if training else ())
        facts |= {**size, "training": training}
        yield Case(what, layer, call, {"x": x * scale}, size, facts, valid[..., None], asks=asks, axes=TOKENS)


def _feed_forward(subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    layer, size = built(subject, subject.site(), rng)
    for lengths in LENGTHS:
        x, valid, facts = _texts(lengths, size["d_model"], rng)
        info = token_info(valid)

        def call(network, inputs: dict[str, Tensor], info: TokenInfo = info) -> Tensor:
            return network(inputs["x"], info, Tap())

        what = f"lengths {_listed(lengths)}"
        yield Case(what, layer, call, {"x": x}, size, {**size, **facts}, valid[..., None], axes=TOKENS)


def _attention(subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    for name in subject.site_names:
        site = subject.site(name)
        every = itertools.product(of_few_and_many_heads(subject, site, rng), zip(LENGTHS, SOURCE_LENGTHS))
        for (layer, size), (lengths, across) in every:
            x, valid, facts = _texts(lengths, size["d_model"], rng)
            source, source_valid = x, valid
            if site.sublayer == "cross" or layer.reads_memory:
                source, source_valid, _ = _texts((across * len(lengths))[: len(lengths)], size["d_model"], rng)
            here, there = token_info(valid), token_info(source_valid)
            positions, shown = there.positions, there.valid
            if layer.reads_memory:  # its keys are those of both
                positions = paddle.concat([paddle.full_like(positions, -1), here.positions], 1)
                shown = paddle.concat([shown, here.valid], 1)
            mask = Mask(here.positions, positions, shown, site.causal, here.encoding)
            shape = [len(lengths), valid.shape[1], shown.shape[1]]
            allowed = mask.allowed()[:, 0].expand(shape).numpy()
            facts |= {"allowed": allowed, "mask": allowed, "source_valid": source_valid, "causal": site.causal}

            def call(attention, inputs: dict[str, Tensor], here=here, there=there, mask=mask) -> Tensor:
                kv = attention.project(inputs.get("source", inputs["x"]), there)
                kv = kv.extend(attention.project(inputs["x"], here)) if attention.reads_memory else kv
                return attention(inputs["x"], kv, here, mask, Tap())

            inputs = {"x": x} if source is x else {"x": x, "source": source}
            what = f"{name}, {size['heads']} heads, lengths {_listed(lengths)}"
            yield Case(what, layer, call, inputs, size, {**size, **facts}, valid[..., None], axes=TOKENS)


def _head(subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    size = {"vocab_size": VOCABULARY, "pad_id": PAD, "unknown_id": UNKNOWN}

    def embedding(d_model: int) -> Embedding:
        table = Embedding(VOCABULARY, d_model, PAD, UNKNOWN)
        words = rng.normal(scale=0.5, size=(VOCABULARY, d_model))
        words[PAD] = 0.0
        table.weight.set_value(words)
        return table

    layer, built_with = built(subject, None, rng, embedding=embedding, **size)
    x, valid, facts = _texts(LENGTHS[0], built_with["d_model"], rng)
    source, source_valid, there = _texts(SOURCE_LENGTHS[0], built_with["d_model"], rng)
    copy_ids = np.where(source_valid, rng.integers(len(SPECIAL), VOCABULARY + EXTRA, source_valid.shape), PAD)
    copy_ids[np.arange(len(copy_ids)), source_valid.sum(1) - 1] = EOS
    facts |= {**size, **built_with, "V": VOCABULARY, "source_valid": source_valid, "copy_ids": copy_ids, "extra": EXTRA}
    facts |= {"table": built_with["embedding"].weight.numpy()}
    places, shown, words = (paddle.to_tensor(array) for array in (there["at"][None], source_valid, copy_ids))

    def memory(inputs: dict[str, Tensor]) -> Memory:
        return Memory(inputs["source"], places, shown, words, EXTRA)

    inputs = {"h": x, "source": source}
    function = "log_probs" if "log_probs" in functions else "forward"

    def log_probs(head, inputs: dict[str, Tensor]) -> Tensor:
        return head.log_probs(inputs["h"], memory(inputs))

    axes = ("sentence", "position", "word")
    yield Case("log_probs", layer, log_probs, inputs, built_with, facts, valid[..., None], function, axes=axes)
    if "loss" in functions:
        target = rng.integers(1, VOCABULARY, valid.shape)
        ids = paddle.to_tensor(target)
        for smoothing in (0.0, 0.1):

            def loss(head, inputs: dict[str, Tensor], smoothing: float = smoothing) -> Tensor:
                return head.loss(inputs["h"], ids, memory(inputs), smoothing)

            more, what = {**facts, "target": target, "smoothing": smoothing}, f"loss, label smoothing {smoothing:g}"
            yield Case(what, layer, loss, inputs, built_with, more, valid, "loss", axes=axes[:2])


class _Plain(nn.Layer):
    """(x − mean) / deviation of each token: the norm that a placement gets."""

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / paddle.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-6)


def plain_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-6)


def _placement(subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
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

            def call(placement, inputs: dict[str, Tensor], branches=branches, info=info) -> Tensor:
                return placement.leave(placement(placement.enter(inputs["x"], info), branches, info), info)

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
            yield Case(f"{stack}, layer {number}", layer, call, {"x": x}, size, facts, valid[..., None], axes=TOKENS)


def _position(subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    """Of all positions of a text, and of some that lie far apart: those where the reference asks which they are, and
    the component takes them."""
    yield from _positions_of(subject, functions, rng)
    for case in _positions_of(subject, functions, rng, far=True):
        with contextlib.suppress(Exception):  # whatever its author raises beyond a length of its own
            case.ours({name: paddle.to_tensor(value) for name, value in case.inputs.items()})
            yield replace(case, asks=ASKED)


def _positions_of(
    subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator, far: bool = False
) -> Iterator[Case]:
    for name in subject.site_names:
        site = subject.site(name)
        if far:
            texts = [(built(subject, site, rng, max_length=FAR[-1] + 1), np.array(FAR))]
        else:
            lengths = [np.arange(length) for length in TEXTS]
            texts = list(itertools.product(of_few_and_many_heads(subject, site, rng), lengths))
        for (encoding, size), at in texts:
            length = len(at)
            size["causal"] = site.causal
            ids = paddle.to_tensor(at[None])
            facts = {**size, "positions": at, "at": at, "q_positions": at, "k_positions": at}
            what = f"{name}, {size['heads']} heads, positions 0 … {at[-1]}"
            uses = encoding.uses()
            if ("embed" in uses or not uses) and {"embed", "forward"} & set(functions):
                x = rng.normal(size=(2, length, size["d_model"]))
                function = "embed" if "embed" in functions else "forward"

                def embedded(encoding, inputs: dict[str, Tensor], ids=ids) -> Tensor:
                    return encoding.embed(inputs["x"], encoding.remap(ids, None))

                axes = ("sentence", "position", "channel")
                yield Case(f"{what}, embed", encoding, embedded, {"x": x}, size, facts, function=function, axes=axes)
            if "bias" in uses and "bias" in functions:

                def biased(encoding, inputs: dict[str, Tensor], ids=ids) -> Tensor:
                    places = encoding.remap(ids, None)
                    bias = encoding.bias(places, places)
                    return paddle.zeros([1, 1, 1]) if bias is None else bias[0]

                seen = np.tril(np.ones([length, length], bool)) if site.causal else None
                axes = ("head", "query", "key")
                yield Case(f"{what}, bias", encoding, biased, {}, size, facts, seen, "bias", axes=axes)
            if "attend" in functions or ("forward" in functions and uses - {"embed"}):
                function = "attend" if "attend" in functions else "forward"
                yield _attended(encoding, ids, what, size, facts, function, rng)


def _attended(
    encoding, ids: Tensor, what: str, size: dict, facts: dict, function: str, rng: np.random.Generator
) -> Case:
    """Softmax attention of one sentence under the encoding: a reference attend(h, q, k, v, allowed, w) → [T, D] says it
    for head h, q, k and v [T, D]."""
    heads, length = facts["heads"], ids.shape[1]
    inputs = {name: rng.normal(size=(heads, length, facts["head_dim"])) for name in ("q", "k", "v")}
    valid = paddle.ones([1, length], "bool")

    def call(encoding, tensors: dict[str, Tensor]) -> Tensor:
        places = encoding.remap(ids, None)
        mask = Mask(places, places, valid, facts["causal"], encoding)
        q, k = encoding.query(tensors["q"][None], places), encoding.key(tensors["k"][None], places)
        scores = paddle.matmul(q, k, transpose_y=True)
        relative = encoding.scores(q, k, places, places)
        scores = (scores if relative is None else scores + relative) * facts["head_dim"] ** -0.5
        weights = F.softmax(mask.add_to(scores), -1)
        term = encoding.values(weights, places, places)
        context = paddle.matmul(weights, tensors["v"][None])
        return (context if term is None else context + term)[0]

    allowed = Mask(ids, ids, valid, facts["causal"], encoding).allowed()[0, 0].expand([length, length]).numpy()
    facts = {**facts, "allowed": allowed, "h": "each"}
    axes = ("head", "position", "channel")
    return Case(f"{what}, attention", encoding, call, inputs, size, facts, function=function, axes=axes)


def _schedule(subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator) -> Iterator[Case]:
    for d_model, steps in RUNS:
        schedule, middle = subject.build(d_model=d_model, steps=steps), steps // 2
        for step in (1, 2, 10, 100, middle - 1, middle, middle + 1, steps - 1, steps):

            def call(schedule, inputs: dict[str, Tensor], step: int = step) -> Tensor:
                return paddle.to_tensor(np.array([schedule(step)]))

            size: dict[str, object] = {"steps": steps, "d_model": d_model}
            facts = {"step": step, **size}
            yield Case(f"step {step} of {steps}, d_model {d_model}", schedule, call, {}, size, facts)


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
FUNCTIONS = {"position": ("embed", "bias", "attend"), "head": ("log_probs", "loss")}  # beside `forward`, or instead
