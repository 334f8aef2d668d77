"""A head that can do nothing but point at the source."""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.data.vocabulary import EOS, SPECIAL
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import MASKED_SCORE, Head, Memory, maps_as
from paddle_tfm_plugins.head._cross_entropy import full_precision

MIN_PROBABILITY = 1.0e-30  # of a token that no position of the source stands for


class PointerNetwork(Head):
    """Pointer network: the output is a position of the source, by additive attention (Vinyals 2015, arXiv:1506.03134).

    p(s) = softmax over the real source tokens s of vᵀ tanh(W_1 memory_s + W_2 h). There are no output words: a target
    token has the probability of the positions that stand for it, and the source's end token, the last position, stands
    for the target's end. h [B, T, C], memory [B, S, C] → log-probabilities [B, T, V], with `output: word` [B, T, V +
    extra].

    `output: word` — a position stands for the word that it holds, in the vocabulary or not, so that a word that comes
    twice has both probabilities. Targets must consist of words of their source.

    `output: position` — the s-th position, counted from 0, stands for the s-th piece of the target vocabulary after the
    special ones. The task has to write positions so that the vocabulary, ordered by falling frequency and then by text,
    has them in their order; task `sort_indices` does. Positions beyond the vocabulary cannot be pointed at.

    What no position stands for has the log-probability −69 and no gradient. Label smoothing spreads over the vocabulary
    all the same, most of which is out of reach, so that it makes little sense here. The paper's decoder reads the input
    vector of the position last pointed at; here it reads the embedding of the piece, as with every head. The scores of
    all pairs are held as [B, T, S, C]: for short texts.

    Options:
        output: what a position stands for.
    """

    def __init__(self, d_model: int, vocab_size: int, pad_id: int, output: Literal["word", "position"] = "word"):
        super().__init__()
        self.vocab_size, self.pad_id = vocab_size, pad_id
        self.extends_vocabulary = output == "word"
        self.memory = Linear(d_model, d_model, bias=False)
        self.state = Linear(d_model, d_model, bias=False)
        self.score = Linear(d_model, 1, bias=False)
        maps_as(self.score.weight, "output")

    def _slots(self, memory: Memory) -> tuple[Tensor, Tensor]:
        """The target id that each position stands for, int64 [B, S], and whether it may be pointed at, bool [B, S]."""
        if self.extends_vocabulary:
            return memory.copy_ids, memory.valid
        number = paddle.cumsum(memory.valid.astype("int64"), 1) - 1  # [B, S]
        ids = paddle.where(memory.copy_ids == EOS, paddle.full_like(number, EOS), number + len(SPECIAL))
        within = ids < self.vocab_size
        return paddle.where(within, ids, paddle.full_like(ids, self.pad_id)), memory.valid & within

    def _weights(self, h: Tensor, memory: Memory, allowed: Tensor) -> Tensor:
        """p(s) [B, T, S]."""
        pairs = paddle.tanh(self.memory(memory.x).unsqueeze(1) + self.state(h).unsqueeze(2))  # [B, T, S, C]
        scores = full_precision(self.score(pairs).squeeze(-1))  # [B, T, S]
        allowed = allowed.astype(scores.dtype).unsqueeze(1)  # [B, 1, S]
        # On a CPU Paddle's softmax leaves 1e-28 for what is hidden: enough for padding to show in a logarithm.
        return F.softmax(scores + (1.0 - allowed) * MASKED_SCORE, -1) * allowed

    def log_probs(self, h: Tensor, memory: Memory) -> Tensor:
        slots, allowed = self._slots(memory)
        weights = self._weights(h, memory, allowed)
        words = self.vocab_size + (memory.extra if self.extends_vocabulary else 0)
        mass = paddle.zeros([*h.shape[:2], words], weights.dtype)
        ids = slots.unsqueeze(1).expand(weights.shape)  # [B, S] -> [B, T, S]
        return _log(paddle.put_along_axis(mass, ids, weights, -1, reduce="add", broadcast=False))

    def loss(self, h: Tensor, target: Tensor, memory: Memory, smoothing: float = 0.0) -> Tensor:
        if smoothing:
            log_p = self.log_probs(h, memory)
            of_target = paddle.take_along_axis(log_p, target.unsqueeze(-1), -1, broadcast=False).squeeze(-1)
            others = log_p[..., : self.vocab_size].sum(-1) - log_p[..., self.pad_id]
            return -(1.0 - smoothing) * of_target - smoothing * others / (self.vocab_size - 1)
        slots, allowed = self._slots(memory)
        weights = self._weights(h, memory, allowed)
        points_at_target = (slots.unsqueeze(1) == target.unsqueeze(-1)).astype(weights.dtype)  # [B, T, S]
        return -_log((weights * points_at_target).sum(-1))


def _log(mass: Tensor) -> Tensor:
    return mass.clip(min=MIN_PROBABILITY).log()
