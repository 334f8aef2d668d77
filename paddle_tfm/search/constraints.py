"""Constraints and a forced prefix for the outputs of any search: log-probabilities are altered on their way from the
model to the search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.data.vocabulary import UNKNOWN
from paddle_tfm.protocols import MASKED_SCORE, Constraints, Decoding

NOT_FORCED = -1  # in `prefixes`, where a prefix has ended


def alter_steps(constraints: Constraints) -> bool:
    """Whether they alter log-probabilities, and not only how many steps there are."""
    return constraints.min_length > 0 or constraints.no_repeat_ngram > 0 or not constraints.unknown


class Constrained(Decoding):
    """`decoding` for a search whose outputs must satisfy `constraints` and begin with `prefixes` (ids, a list for each
    sentence).

    A forced token keeps its log-probability and is exempt from the constraints, but counts as part of the output that
    they consider. An impossible token gets MASKED_SCORE or less. At a sentence's maximum length the end is never
    impossible.
    """

    def __init__(self, decoding: Decoding, constraints: Constraints, prefixes: Sequence[Sequence[int]]):
        self.decoding, self.constraints = decoding, constraints
        self.bos, self.eos = decoding.bos, decoding.eos
        self.max_lengths, self.sentences = decoding.max_lengths, decoding.sentences
        # A maximum below `min_length` is that of the model, which all sentences share.
        self.min_length = min([constraints.min_length, *self.max_lengths])
        self.prefixes = np.full((len(prefixes), max(map(len, prefixes), default=0)), NOT_FORCED, np.int64)  # [R, P]
        for row, prefix in zip(self.prefixes, prefixes):
            row[: len(prefix)] = prefix
        self.history = np.zeros((len(prefixes), 0), np.int64)  # [R, 1 + t]: the begin token, then t tokens

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V'] of the next, as the constraints leave them."""
        self.history = np.concatenate([self.history, tokens.numpy()[:, None]], 1)
        t = self.history.shape[1] - 1
        raw = self.decoding.advance(tokens)
        log_probs = self._forbid_repeats(raw) if self.constraints.no_repeat_ngram > 0 else raw
        if not self.constraints.unknown:
            log_probs = log_probs + _only(UNKNOWN, log_probs.shape[1])
        if t < self.min_length:
            log_probs = self._forbid_end(log_probs)
        return self._force_prefix(raw, log_probs, t) if t < self.prefixes.shape[1] else log_probs

    def select(self, rows: Tensor) -> None:
        """Keep these rows only."""
        self.decoding.select(rows)
        index = rows.numpy()
        self.history, self.prefixes = self.history[index], self.prefixes[index]

    def _forbid_repeats(self, log_probs: Tensor) -> Tensor:
        """No token that would complete a run of n tokens which the output holds already."""
        n, length = self.constraints.no_repeat_ngram, self.history.shape[1]
        if length < n:
            return log_probs
        runs = np.lib.stride_tricks.sliding_window_view(self.history, n, axis=1)  # [R, 2 + t - n, n]
        last = self.history[:, None, length - n + 1 :]  # [R, 1, n - 1]
        row, start = np.nonzero((runs[:, :, :-1] == last).all(-1))
        if not row.size:
            return log_probs
        index = paddle.to_tensor(np.stack([row, runs[row, start, -1]], 1))
        return paddle.scatter_nd_add(log_probs, index, paddle.full([row.size], MASKED_SCORE, log_probs.dtype))

    def _forbid_end(self, log_probs: Tensor) -> Tensor:
        """No end, except in rows where nothing else is possible."""
        without_end = log_probs + _only(self.eos, log_probs.shape[1])
        return paddle.where(without_end.max(-1, keepdim=True) > MASKED_SCORE / 2, without_end, log_probs)

    def _force_prefix(self, raw: Tensor, log_probs: Tensor, t: int) -> Tensor:
        """Token t of its prefix, with its log-probability in `raw`, and no other, in rows whose prefix has one."""
        token = paddle.to_tensor(self.prefixes[:, t : t + 1])  # [R, 1]
        only = paddle.where(paddle.arange(raw.shape[1]) == token, raw, paddle.full_like(raw, MASKED_SCORE))
        return paddle.where(token == NOT_FORCED, log_probs, only)


def _only(token: int, vocabulary: int) -> Tensor:
    """[V'], MASKED_SCORE for one token, and 0 for all others."""
    mask = np.zeros(vocabulary, np.float32)
    mask[token] = MASKED_SCORE
    return paddle.to_tensor(mask)
