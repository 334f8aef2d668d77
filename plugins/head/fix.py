"""Logits that depend on directions alone."""

from __future__ import annotations

import math

import paddle
from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.layers import Embedding
from paddle_tfm.ops import unit
from paddle_tfm.protocols import Head, Memory, maps_as
from paddle_tfm.validators import positive
from paddle_tfm_plugins.head._cross_entropy import cross_entropy, full_precision, log_softmax_


class FixNorm(Head):
    """FixNorm: word vectors and h of fixed length, so that no word is favoured by its own (Nguyen 2018,
    arXiv:1710.01329).

    p = softmax(g · cos(h, w_v) + b), w_v the v-th row of a table [V, C]; h [B, T, C] → log-probabilities [B, T, V].

    The paper fixes both lengths to a number r, set by hand, which makes g = r²; here g is one trained number, as in
    arXiv:1910.05895, whose last norm gives h a trained length that starts at sqrt(C). Without `learned` it stays at
    `scale`. That paper also fixes the lengths of the input embeddings; this head leaves them alone.

    Options:
        scale: the initial g; null: sqrt(C). learned: whether g is trained.
        tied: take the target embedding's table instead of an own one. bias: whether b [V] is there.

    Raises:
        ValueError: scale is not positive.
    """

    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        embedding: Embedding | None = None,
        pad_id: int = 0,
        scale: float | None = None,
        learned: bool = True,
        tied: bool = False,
        bias: bool = False,
    ):
        super().__init__()
        positive(scale=scale)
        if tied and embedding is None:
            raise ValueError(_("`tied` needs a target embedding, which a model without a decoder has not"))
        self.pad_id = pad_id
        start = math.sqrt(d_model) if scale is None else scale
        constant = nn.initializer.Constant(start)
        self.scale = self.create_parameter([1], default_initializer=constant) if learned else start
        self.weight = None if tied else maps_as(self.create_parameter([vocab_size, d_model]), None)
        self._shared = (
            (embedding,) if tied else ()
        )  # in a tuple, so that it is not registered (and saved) a second time
        self.bias = self.create_parameter([vocab_size], is_bias=True) if bias else None

    def _directions(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """h [B, T, C] with length g, and the words [V, C] with length 1."""
        if self.weight is not None:
            return unit(full_precision(h), self.scale), unit(full_precision(self.weight))
        table = full_precision(self._shared[0].weight)
        real = paddle.ones([table.shape[0], 1], table.dtype)
        real[self.pad_id] = 0.0  # the row of padding is zero and stays so: it has no direction, and gets no gradient
        return unit(full_precision(h), self.scale), unit(table, real)

    def _logits(self, h: Tensor, words: Tensor) -> Tensor:
        logits = paddle.matmul(h, words, transpose_y=True)
        return logits if self.bias is None else logits + self.bias

    def loss(self, h: Tensor, target: Tensor, memory: Memory | None, smoothing: float = 0.0) -> Tensor:
        h, words = self._directions(h)
        return cross_entropy(
            lambda rows: self._logits(rows, words), h, words, self.bias, target, smoothing, self.pad_id
        )

    def log_probs(self, h: Tensor, memory: Memory | None) -> Tensor:
        return log_softmax_(full_precision(self._logits(*self._directions(h))))
