"""The target embedding as output matrix."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import Head, Memory
from paddle_tfm.validators import positive
from paddle_tfm_plugins.head._cross_entropy import cross_entropy, full_precision, log_softmax_, soft_cap


class TiedHead(Head):
    """Softmax over the target embedding's own table, V · C weights fewer (Press 2017, arXiv:1608.05859).

    p = softmax(h Eᵀ + b), E [V, C] the embedding's `weight` itself: one tensor, saved once, trained from both sides.
    h [B, T, C] → log-probabilities [B, T, V].

    Options:
        bias: whether b [V] is there. cap: logits x become cap · tanh(x / cap), so that none is beyond ± cap (Gemma 2,
            arXiv:2408.00118, has 30); None: no cap.

    Raises:
        ValueError: cap is not positive.
    """

    def __init__(
        self, embedding: Embedding, vocab_size: int, pad_id: int, bias: bool = False, cap: float | None = None
    ):
        positive(cap=cap)
        super().__init__()
        self._shared = (embedding,)  # in a tuple, so that it is not registered (and saved) a second time
        embedding.weight.register_hook(self._spare_padding)
        self.pad_id, self.cap = pad_id, cap
        self.bias = self.create_parameter([vocab_size], is_bias=True) if bias else None

    def _logits(self, h: Tensor) -> Tensor:
        return ops.linear(h, self.words, self.bias, transpose=True)  # [B, T, C] · [V, C]ᵀ -> [B, T, V]

    @property
    def words(self) -> Tensor:
        """E [V, C]."""
        return self._shared[0].weight

    def _spare_padding(self, gradient: Tensor) -> Tensor:
        """The row of padding is zero and stays so, though the softmax would push it."""
        with paddle.no_grad():
            gradient[self.pad_id] = 0.0
        return gradient

    def loss(self, h: Tensor, target: Tensor, memory: Memory | None, smoothing: float = 0.0) -> Tensor:
        return cross_entropy(self._logits, h, self.words, self.bias, target, smoothing, self.pad_id, self.cap)

    def log_probs(self, h: Tensor, memory: Memory | None) -> Tensor:
        return log_softmax_(soft_cap(full_precision(self._logits(h)), self.cap))
