"""From the decoder's output to probabilities over tokens."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols.context import Memory
from paddle_tfm.protocols.layer_component import LayerComponent


class Head(LayerComponent):
    """log p(token | h), log softmax(h W + b) in the plainest case: h [B, T, C] → [B, T, V (+ `memory.extra`)].

    `memory` is what the decoder attends to, for heads that copy words of the source; without an encoder it is None.
    Without a decoder h is the encoder's output, at the places of the labels.

    Givens:
        d_model: C. vocab_size: V. pad_id, unknown_id: ids of special tokens.
        embedding: the target embedding, whose `weight` [V, C] `tied` shares; that of the source in an encoder-only
            model with one table; otherwise None.

    Invariances: exp(log_probs) sums to 1, and loss = −log_probs[target] without smoothing.
    Raises: ValueError in the constructor, where an option is out of range or the model lacks what the head needs.

    Example::

        from paddle.nn import functional as F
        from paddle_tfm.layers import Linear
        from paddle_tfm.protocols import Head

        class PlainHead(Head):
            def __init__(self, d_model: int, vocab_size: int, pad_id: int):
                super().__init__()
                self.output, self.words, self.pad_id = Linear(d_model, vocab_size), vocab_size, pad_id

            def log_probs(self, h, memory):
                return F.log_softmax(self.output(h), -1)  # [B, T, V]

            def loss(self, h, target, memory, smoothing=0.0):
                log_probs = self.log_probs(h, memory)
                picked = log_probs.take_along_axis(target.unsqueeze(-1), -1).squeeze(-1)  # [B, T]
                mean = (log_probs.sum(-1) - log_probs[..., self.pad_id]) / (self.words - 1)
                return -(1 - smoothing) * picked - smoothing * mean
    """

    kind: ClassVar[str] = "head"
    givens = frozenset({"d_model", "vocab_size", "embedding", "unknown_id", "pad_id"})
    extends_vocabulary: ClassVar[bool] = False  # whether it may produce ids ≥ V: words copied from the source

    def loss(self, h: Tensor, target: Tensor, memory: Memory | None, smoothing: float = 0.0) -> Tensor:
        """Cross entropy of each token [B, T]; target int64 [B, T]. `smoothing` ε spreads ε over all tokens but padding.
        Where the target is padding, any finite number may stand: the caller masks it. What a head is trained for
        besides (coverage) is added to its tokens' losses."""
        raise NotImplementedError

    def log_probs(self, h: Tensor, memory: Memory | None) -> Tensor:
        """[B, T, V] or [B, T, V + memory.extra]."""
        raise NotImplementedError

    def step(
        self, h: Tensor, memory: Memory | None, state: tuple[Tensor, ...] = ()
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """A step of decoding: h [B, T, C] → (`log_probs` after the last of them, [B, V'], and the next state).

        `state` holds what the head knows of the tokens before h: tensors [B, …], of which the engine selects rows; ()
        before the first token. Override it where predictions depend on earlier ones (coverage).
        """
        h = h[:, -1:] if h.shape[1] > 1 else h  # [B, T, C] -> [B, 1, C]
        return self.log_probs(h, memory).squeeze(1), state
