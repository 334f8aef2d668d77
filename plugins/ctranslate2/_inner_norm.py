"""The norm before an output projection."""

from __future__ import annotations

from paddle_tfm.protocols import Attention, FeedForward, Refusal


def require_none(sublayer: Attention | FeedForward) -> None:
    """Raises Refusal where a placement gave a sublayer such a norm."""
    if sublayer.inner_norm is not None:
        raise Refusal("has a norm before its output projection, where CTranslate2 has none")
