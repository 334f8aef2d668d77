"""From the decoder's output to probabilities over tokens."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.protocols.component import Component
from paddle_tfm.protocols.context import Memory


class Head(Component, nn.Layer):
    """From the decoder's output h [B, T, C] to log-probabilities over V tokens (+ `memory.extra` words of the source).

    Without an encoder `memory` is None; without a decoder h is the encoder's output, at the places of the labels.
    Givens: d_model, vocab_size, embedding (the target embedding, whose `weight` [V, C] `tied` shares; that of the source
    in an encoder-only model with one table, else not given there), unknown_id, pad_id. Promise: exp(log_probs) sums to 1, and loss = −log_probs[target] without smoothing.
    """

    kind: ClassVar[str] = "head"
    givens = frozenset({"d_model", "vocab_size", "embedding", "unknown_id", "pad_id"})
    extends_vocabulary: ClassVar[bool] = False  # may produce ids ≥ V: words copied from the source

    def loss(self, h: Tensor, target: Tensor, memory: Memory, smoothing: float = 0.0) -> Tensor:
        """Cross entropy of each token [B, T]; target int64 [B, T]. `smoothing` ε spreads ε over all tokens but padding.
        Where the target is padding, any finite number may stand: it is not counted."""
        raise NotImplementedError

    def log_probs(self, h: Tensor, memory: Memory) -> Tensor:
        """[B, T, V] or [B, T, V + memory.extra]."""
        raise NotImplementedError
