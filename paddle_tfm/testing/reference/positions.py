"""What a positional encoding computes on random inputs: by itself, and inside attention."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.protocols import Mask
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.reference.case import Case, built, of_few_and_many_heads

LENGTHS = (5, 70)
FAR = (0, 1, 3, 9, 40, 130, 200, 511, 513, 1500)  # where buckets are wide, waves have gone round, and tables may end
ASKED = frozenset({"positions", "at", "q_positions", "k_positions"})


def cases_of_positions(
    subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator
) -> Iterator[Case]:
    """Of all positions of a text, and of some that lie far apart: those where the reference asks which they are, and
    the component takes them."""
    yield from _cases(subject, functions, rng)
    for case in _cases(subject, functions, rng, far=True):
        with contextlib.suppress(Exception):  # whatever its author raises beyond a length of its own
            case.ours({name: paddle.to_tensor(value) for name, value in case.inputs.items()})
            yield replace(case, asks=ASKED)


def _cases(
    subject: ComponentUnderTest, functions: Sequence[str], rng: np.random.Generator, far: bool = False
) -> Iterator[Case]:
    for name in subject.site_names:
        site = subject.site(name)
        if far:
            texts = [(built(subject, site, rng, max_length=FAR[-1] + 1), np.array(FAR))]
        else:
            lengths = [np.arange(length) for length in LENGTHS]
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
