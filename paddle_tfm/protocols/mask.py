"""Which keys a query may see."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from functools import cached_property, partial
from typing import TYPE_CHECKING

import paddle
from paddle import Tensor

from paddle_tfm import place

if TYPE_CHECKING:
    from paddle_tfm.protocols.position import PositionalEncoding

MASKED_SCORE = -1.0e30
"""Added to the score of a key that must not be seen: its weight is 0 (on a CPU 1e-28, Paddle's least). Where no norm
acts, scores reach 1e20: it lies below them, and so far above the least float32 that several may be added up."""
MASKED_SCORE_HALF = -1.0e4
"""The same in float16, whose largest number is 65504."""

Predicate = Callable[[Tensor, Tensor], Tensor]


class Mask:
    """Which keys a query may see, and the position bias on top: built once a pass, turned into numbers when asked.

    Args:
        q_positions: int64 [B|1, Tq]. k_positions: int64 [B|1, Tk]. k_valid: bool [B, Tk].
        causal: whether a key later than its query is hidden.
        encoding: whose `bias` is added (None: none).
        sees_all: whether the caller knows that nothing is hidden, so that nobody needs to look; `k_valid` may then be a
            function that makes it, and is only called where somebody asks.

    Example: a query sees the keys at most three positions away.

        positions, valid = paddle.arange(9).unsqueeze(0), paddle.ones([2, 9], "bool")
        mask = Mask(positions, positions, valid, causal=True)
        near = mask.restricted(("window", 3), lambda q, k: (q - k).abs() <= 3)
        weights = paddle.nn.functional.softmax(near.add_to(paddle.zeros([2, 4, 9, 9])), -1)
    """

    def __init__(
        self,
        q_positions: Tensor,
        k_positions: Tensor,
        k_valid: Tensor | Callable[[], Tensor],
        causal: bool,
        encoding: PositionalEncoding | None = None,
        sees_all: bool = False,
    ):
        self.q_positions, self.k_positions = q_positions, k_positions
        self.causal, self.encoding, self.sees_all = causal, encoding, sees_all
        self._k_valid = k_valid
        self._visible = _Visible(partial(_allowed, q_positions, k_positions, k_valid, causal and not sees_all))
        self._restricted: dict[Hashable, Mask] = {}
        self._dense: dict[str, Tensor] = {}
        self._broadcast: dict[tuple, Tensor] = {}  # by dtype and shape of the scores

    @cached_property
    def k_valid(self) -> Tensor:
        """bool [B, Tk]: which keys are real tokens."""
        return self._k_valid() if callable(self._k_valid) else self._k_valid

    def with_queries(self, q_positions: Tensor) -> Mask:
        """The same keys seen by other queries; where no key is hidden from a query for its position, that is computed
        once for both."""
        other = Mask(q_positions, self.k_positions, self._k_valid, self.causal, self.encoding, self.sees_all)
        if not self.causal:
            other._visible = self._visible.with_queries()
            # A GPU would have to wait for the answer, and adds zeros in less time.
            other.sees_all = place.on_cpu(q_positions) and other._visible.everything
        return other

    def with_encoding(self, encoding: PositionalEncoding) -> Mask:
        """The same mask under another encoding's bias (encodings with a table per layer); the rest is computed once."""
        return self._copy(self._visible, encoding)

    def restricted(self, key: Hashable, predicate: Predicate) -> Mask:
        """This mask, which also hides each key for which `predicate` is false: a window, a pattern of blocks.

        predicate(q [B|1, Tq, 1], k [B|1, 1, Tk]) → bool [B|1, Tq, Tk], a function of the positions of queries and keys.
        `key` names it, with all numbers that it depends on: for one key the predicate is evaluated once, and all layers
        that share this mask get the same object.
        """
        if key not in self._restricted:
            q, k = self.q_positions.unsqueeze(2), self.k_positions.unsqueeze(1)
            visible = self._visible.restricted(key, lambda: predicate(q, k))
            self._restricted[key] = self._copy(visible, self.encoding)
        return self._restricted[key]

    def _copy(self, visible: _Visible, encoding: PositionalEncoding | None) -> Mask:
        sees_all = self.sees_all and visible is self._visible
        other = Mask(self.q_positions, self.k_positions, self._k_valid, self.causal, encoding, sees_all)
        other._visible = visible
        return other

    def allowed(self) -> Tensor:
        """bool [B, 1, Tq|1, Tk]: True where the query may see the key."""
        return self._visible.allowed

    def dense(self, dtype: str | paddle.dtype = "float32") -> Tensor:
        """Additive [B, H|1, Tq|1, Tk]: 0 where allowed, very negative but finite where not, plus the encoding's
        bias."""
        name = str(dtype).removeprefix("paddle.")
        if name not in self._dense:
            bias = None if self._bias is None else self._bias.astype(_dtype(name))
            if bias is None or not self.sees_all:
                hidden = self._visible.additive(name)
                bias = hidden if bias is None else hidden + bias
            self._dense[name] = bias
        return self._dense[name]

    @cached_property
    def _bias(self) -> Tensor | None:
        return self.encoding.bias(self.q_positions, self.k_positions) if self.encoding is not None else None

    @cached_property
    def is_zero(self) -> bool:
        """Whether `dense` is zero all over: no key hidden, no bias."""
        return self._bias is None and (self.sees_all or self._visible.everything)

    def add_to(self, scores: Tensor) -> Tensor:
        """scores [B, H, Tq, Tk] + `dense`.

        On a CPU, where a broadcast sum takes several times as long as one of equal shapes, `dense` is broadcast over
        heads and queries first, once for all layers; and a step of decoding whose query sees every key adds nothing.
        """
        if (self.sees_all or (scores.shape[2] == 1 and place.on_cpu(scores))) and self.is_zero:
            return scores
        dense = self.dense(scores.dtype)
        if not place.on_cpu(scores) or dense.shape[1] != 1:
            return scores + dense
        shape = tuple(scores.shape)
        known = self._broadcast if self._bias is not None else self._visible.broadcast
        addend = known.get((scores.dtype, shape))
        if addend is None:
            batch, _, queries, keys = dense.shape
            times = shape[1] * shape[2] // queries  # heads, and queries where one row serves all
            row = dense.reshape([batch, 1, queries * keys])
            addend = paddle.matmul(paddle.ones([batch, times, 1], dense.dtype), row)  # [B, times, Tq|1 · Tk]
            known[scores.dtype, shape] = addend = addend.reshape([batch, *shape[1:]])
        return scores + addend


class _Visible:
    """Which keys are seen, whatever the encoding: computed once for all masks that differ in nothing but that."""

    def __init__(self, allowed: Callable[[], Tensor]):
        self._compute = allowed
        self._restricted: dict[Hashable, _Visible] = {}
        self._additive: dict[str, Tensor] = {}
        self.broadcast: dict[tuple, Tensor] = {}  # `additive` for scores of a dtype and shape

    @cached_property
    def allowed(self) -> Tensor:
        return self._compute()

    @cached_property
    def everything(self) -> bool:
        """Whether no key is hidden."""
        return bool(self.allowed.all())

    def with_queries(self) -> _Visible:
        """The same for other queries, of which it does not depend; a restriction may."""
        if place.on_cpu(self.allowed):
            _ = self.everything  # so that it is computed once for all copies
        other = copy.copy(self)
        other._restricted = {}
        return other

    def additive(self, dtype: str) -> Tensor:
        """[B, 1, Tq|1, Tk]: 0 where allowed, elsewhere very negative."""
        if dtype not in self._additive:
            lowest = MASKED_SCORE_HALF if dtype == "float16" else MASKED_SCORE
            self._additive[dtype] = (1.0 - self.allowed.astype(_dtype(dtype))) * lowest
        return self._additive[dtype]

    def restricted(self, key: Hashable, condition: Callable[[], Tensor]) -> _Visible:
        """The keys that also meet a condition, bool [B|1, Tq, Tk]; for one `key` it is evaluated once."""
        if key not in self._restricted:
            allowed = paddle.logical_and(self.allowed, condition().unsqueeze(1))
            self._restricted[key] = _Visible(lambda: allowed)  # without a way back: a cycle would outlive the pass
        return self._restricted[key]


def _dtype(name: str) -> paddle.dtype:
    return getattr(paddle, name)


def _allowed(q_positions: Tensor, k_positions: Tensor, k_valid: Tensor | Callable[[], Tensor], causal: bool) -> Tensor:
    allowed = (k_valid() if callable(k_valid) else k_valid).unsqueeze([1, 2])  # [B, 1, 1, Tk]
    if causal:
        past = q_positions.unsqueeze(2) >= k_positions.unsqueeze(1)  # [B|1, Tq, Tk]
        allowed = paddle.logical_and(allowed, past.unsqueeze(1))
    return allowed
