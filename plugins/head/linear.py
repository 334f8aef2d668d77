"""An output matrix of its own."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Head, Memory
from paddle_tfm.validators import positive
from paddle_tfm_plugins.head._cross_entropy import cross_entropy, full_precision, log_softmax_, soft_cap


class LinearHead(Head):
    """Softmax over an output matrix of its own, shared with no embedding (Vaswani 2017, arXiv:1706.03762, untied).

    p = softmax(h W + b); h [B, T, C], W [C, V] → log-probabilities [B, T, V].

    Options:
        bias: whether b is there. cap: logits x become cap · tanh(x / cap), so that none is beyond ± cap (Gemma 2,
            arXiv:2408.00118, has 30); None: no cap.

    Raises:
        ValueError: cap is not positive.
    """

    def __init__(self, d_model: int, vocab_size: int, pad_id: int, bias: bool = True, cap: float | None = None):
        positive(cap=cap)
        super().__init__()
        self.pad_id, self.cap = pad_id, cap
        self.output = Linear(d_model, vocab_size, bias)

    def loss(self, h: Tensor, target: Tensor, memory: Memory | None, smoothing: float = 0.0) -> Tensor:
        words = self.output.weight.transpose([1, 0])  # [C, V] -> [V, C]
        return cross_entropy(self.output, h, words, self.output.bias, target, smoothing, self.pad_id, self.cap)

    def log_probs(self, h: Tensor, memory: Memory | None) -> Tensor:
        return log_softmax_(soft_cap(full_precision(self.output(h)), self.cap))
