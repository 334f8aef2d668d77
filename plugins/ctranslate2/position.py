"""Encodings: what they add to the embeddings, to the scores by distance, to keys and values; how far they rotate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddle_tfm.protocols import PositionalEncoding, Refusal
from paddle_tfm_plugins.position.alibi import ALiBi
from paddle_tfm_plugins.position.chain import Chain
from paddle_tfm_plugins.position.none import NoPosition
from paddle_tfm_plugins.position.nope_hybrid import NoPEHybrid
from paddle_tfm_plugins.position.randomized import Randomized
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.shaw import Shaw


def none(encoding: NoPosition) -> dict[str, Any]:
    """Nothing."""
    return {}


def added(encoding: PositionalEncoding) -> dict[str, Any]:
    """A table of what is added to the embeddings."""
    return {"adds": encoding.embed}


def by_distance(encoding: PositionalEncoding) -> dict[str, Any]:
    """A table of a bias that depends on the distance alone."""
    return {"by_distance": encoding.bias}


def alibi(encoding: ALiBi) -> dict[str, Any]:
    """CTranslate2's own, where the number of heads is a power of two: for others it has the slopes of the authors'
    code."""
    heads = encoding.slopes.shape[0]
    return {"by_distance": encoding.bias, "alibi": encoding.causal and heads & (heads - 1) == 0}


def rotary(encoding: Rotary) -> dict[str, Any]:
    """The channels of a head that turn, and the base."""
    return {"rotary_base": encoding.base, "rotary_dim": encoding.width}


def shaw(encoding: Shaw) -> dict[str, Any]:
    """A vector for each distance."""
    values = None if encoding.value_table is None else encoding.value_table.numpy()
    return {"keys": encoding.key_table.numpy(), "values": values}


def chain(encoding: Chain, held: Callable[[PositionalEncoding], dict[str, Any]]) -> dict[str, Any]:
    """All that its encodings are, if no two of them are of one way but for sums."""
    total: dict[str, Any] = {}
    for part in encoding.encodings():
        answer = held(part)
        if answer.keys() & total.keys() - {"adds", "by_distance"}:
            raise Refusal("holds two encodings of one way, and CTranslate2 one")
        total |= answer
    total.pop("alibi", None)  # which would stand for the whole bias
    ours = {"adds": encoding.embed, "by_distance": encoding.bias}
    return {key: ours.get(key, value) for key, value in total.items()}


def nope_hybrid(encoding: NoPEHybrid, held: Callable[[PositionalEncoding], dict[str, Any]]) -> dict[str, Any]:
    """The encoding that it holds, in the layers that have it."""
    answer = held(encoding.encoding)
    if "by_distance" in answer:
        raise Refusal("has no bias in some layers, and CTranslate2 one for all")
    return answer


def randomized(encoding: Randomized, held: Callable[[PositionalEncoding], dict[str, Any]]) -> dict[str, Any]:
    """The encoding that it holds. Positions that stand apart are the exporter's to see: it asks `remap`."""
    return held(encoding.encoding)
