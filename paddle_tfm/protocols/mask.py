"""Which keys a query may see."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import paddle
from paddle import Tensor

if TYPE_CHECKING:
    from paddle_tfm.protocols.position import PositionalEncoding


MASKED_SCORE = (
    -1.0e9
)  # added to the score of a key that must not be seen: its weight is 0 (on a CPU 1e-28, Paddle's least)

# What the engine can give to a constructor, by kind. Every other parameter is an option of the recipe.


class Mask:
    """Which keys a query may see, and the position bias on top: built once a pass, turned into numbers when asked.

    Args:
        q_positions: int64 [B|1, Tq]. k_positions: int64 [B|1, Tk]. k_valid: bool [B, Tk].
        causal: whether a key later than its query is hidden.
        encoding: whose `bias` is added (None: none).
    """

    def __init__(
        self,
        q_positions: Tensor,
        k_positions: Tensor,
        k_valid: Tensor,
        causal: bool,
        encoding: PositionalEncoding | None = None,
    ):
        self.q_positions, self.k_positions = q_positions, k_positions
        self.k_valid, self.causal, self.encoding = k_valid, causal, encoding
        self._hidden: dict[str, Tensor] = {}  # shared by `with_encoding`
        self._dense: dict[str, Tensor] = {}
        self._spread: dict[tuple, Tensor] = {}  # by dtype and shape of the scores

    def with_encoding(self, encoding: PositionalEncoding) -> Mask:
        """The same mask under another encoding's bias (encodings with a table per layer); the rest is computed once."""
        other = Mask(self.q_positions, self.k_positions, self.k_valid, self.causal, encoding)
        other._hidden = self._hidden
        return other

    def allowed(self) -> Tensor:
        """bool [B, 1, Tq|1, Tk]: True where the query may see the key."""
        if "allowed" not in self._hidden:
            allowed = self.k_valid.unsqueeze([1, 2])  # [B, 1, 1, Tk]
            if self.causal and self.q_positions.shape[1] > 1:
                past = self.q_positions.unsqueeze(2) >= self.k_positions.unsqueeze(1)  # [B|1, Tq, Tk]
                allowed = paddle.logical_and(allowed, past.unsqueeze(1))
            self._hidden["allowed"] = allowed
        return self._hidden["allowed"]

    def dense(self, dtype: str | paddle.dtype = "float32") -> Tensor:
        """Additive [B, H|1, Tq|1, Tk]: 0 where allowed, very negative but finite where not, plus the encoding's bias."""
        name = str(dtype).removeprefix("paddle.")
        if name not in self._dense:
            if name not in self._hidden:
                never = MASKED_SCORE if name in ("float32", "float64") else -1.0e4
                self._hidden[name] = (1.0 - self.allowed().astype(name)) * never
            bias, hidden = self._bias, self._hidden[name]
            self._dense[name] = hidden if bias is None else hidden + bias.astype(name)
        return self._dense[name]

    @cached_property
    def _bias(self) -> Tensor | None:
        return self.encoding.bias(self.q_positions, self.k_positions) if self.encoding is not None else None

    @cached_property
    def _idle(self) -> bool:
        """Whether `dense` is zero all over: no key hidden, no bias."""
        return bool(self.allowed().all()) and self._bias is None

    def add_to(self, scores: Tensor) -> Tensor:
        """scores [B, H, Tq, Tk] + `dense`. On a CPU, where adding what must be broadcast takes several times as long as
        adding like to like, `dense` is spread over heads and queries first, once for all layers; and a step of decoding,
        which may look at everything before it, adds nothing."""
        if scores.shape[2] == 1 and scores.place.is_cpu_place() and self._idle:
            return scores
        dense = self.dense(scores.dtype)
        if not scores.place.is_cpu_place() or dense.shape[1] != 1:
            return scores + dense
        shape = tuple(scores.shape)
        spread = self._spread.get((scores.dtype, shape))
        if spread is None:
            batch, _, queries, keys = dense.shape
            times = shape[1] * shape[2] // queries  # heads, and queries where one row serves all
            row = dense.reshape([batch, 1, queries * keys])
            spread = paddle.matmul(paddle.ones([batch, times, 1], dense.dtype), row)  # [B, times, Tq|1 · Tk]
            self._spread[scores.dtype, shape] = spread = spread.reshape([batch, *shape[1:]])
        return scores + spread
