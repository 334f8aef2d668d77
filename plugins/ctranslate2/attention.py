"""Attentions: four projections, the numbers of heads, and what stands beside them."""

from __future__ import annotations

from typing import Any

from paddle_tfm.protocols import Refusal
from paddle_tfm_plugins.attention.cosine import Cosine
from paddle_tfm_plugins.attention.interleaved import Interleaved
from paddle_tfm_plugins.attention.local import Local
from paddle_tfm_plugins.attention.lora import LoRA, LowRank
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.attention.qk_norm import QKNorm
from paddle_tfm_plugins.attention.single_head import SingleHead


def multihead(attention: MultiHead) -> dict[str, Any]:
    """As many heads of keys and values as of queries, or fewer."""
    names, heads = ("query", "key", "value", "output"), attention.num_heads
    width = attention.query.weight.shape[1]
    matrices = {name: getattr(attention, name) for name in names}
    return {**matrices, "heads": heads, "kv_heads": attention.kv_heads, "head_dim": width // heads}


def lora(attention: LoRA) -> dict[str, Any]:
    """Each projection as one matrix, with its change of low rank in it."""
    parts = multihead(attention)
    return {name: part.merged() if isinstance(part, LowRank) else part for name, part in parts.items()}


def single_head(attention: SingleHead) -> dict[str, Any]:
    """No output projection: CTranslate2 gets the identity."""
    width = attention.value.weight.shape[1]
    if attention.query.weight.shape[1] != width:
        raise Refusal("has keys of another width than its values, and CTranslate2 has one width for both")
    matrices = {"query": attention.query, "key": attention.key, "value": attention.value, "output": None}
    return {**matrices, "heads": 1, "kv_heads": 1, "head_dim": width}


def local(attention: Local) -> dict[str, Any]:
    """A window on each side of the query."""
    return {**multihead(attention), "window": attention.window}


def interleaved(attention: Interleaved) -> dict[str, Any]:
    """With a window or without, by the layer."""
    return multihead(attention) if attention.is_global else local(attention)


def cosine(attention: Cosine) -> dict[str, Any]:
    """Vectors of length one, and a gain."""
    return {**multihead(attention), "cosine": attention.gain.item()}


def qk_norm(attention: QKNorm) -> dict[str, Any]:
    """Norms of queries and keys, head by head."""
    if not attention.per_head:
        raise Refusal("normalizes all heads together, and CTranslate2's self-attention each by itself")
    return {**multihead(attention), "query_norm": attention.query_norm, "key_norm": attention.key_norm}
