"""A head that can copy words of the source."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import MASKED_SCORE, Head, Memory, maps_as
from paddle_tfm_plugins.head._cross_entropy import full_precision, log_softmax, log_sum_exp

LOWEST = -69.0  # log-probability (1e-30) of a word beyond the vocabulary that the source does not have


class PointerGenerator(Head):
    """Pointer-generator: words come from the vocabulary or are copied from the source (See 2017, arXiv:1704.04368).

    P(w) = g · softmax(h W + b)_w + (1 − g) · (Σ of a_s over the source positions s that hold w), where a = softmax(h
    W_q W_kᵀ memoryᵀ / sqrt(C)) is an attention of the head's own over real source tokens, and g = sigmoid([h; a ·
    memory] w_g + b_g). The paper's g also sees the decoder's input, and its vocabulary the context: both are in h here.

    h [B, T, C], memory [B, S, C] → log-probabilities [B, T, V + extra]. Ids from V on are the source's words outside
    the vocabulary. Label smoothing spreads over the V words of the vocabulary but padding: how many other words there
    are depends on the batch, and a sentence's loss must not.

    Options:
        bias: whether b is there.
    """

    extends_vocabulary = True

    def __init__(self, d_model: int, vocab_size: int, pad_id: int, bias: bool = True):
        super().__init__()
        self.vocab_size, self.pad_id = vocab_size, pad_id
        self.output = Linear(d_model, vocab_size, bias)
        self.query = Linear(d_model, d_model)
        self.key = Linear(d_model, d_model, bias=False)
        self.gate = Linear(2 * d_model, 1)
        maps_as(self.gate.weight, "output")

    def _weights(self, h: Tensor, memory: Memory) -> Tensor:
        """Weights of the source [B, T, S]."""
        # W_k is applied to the query instead of to each source token: the same product, and no keys to compute at every
        # step.
        q = paddle.matmul(self.query(h), self.key.weight, transpose_y=True) * h.shape[-1] ** -0.5
        return attend(paddle.matmul(q, memory.x, transpose_y=True), memory)

    def _parts(self, h: Tensor, memory: Memory, copy: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the vocabulary [B, T, V], and the gate before its sigmoid [B, T, 1]."""
        context = paddle.matmul(copy.astype(h.dtype), memory.x)  # [B, T, C]
        gate = self.gate(paddle.concat([h, context], -1))
        return full_precision(self.output(h)), full_precision(gate)

    def log_probs(self, h: Tensor, memory: Memory) -> Tensor:
        return self._log_probs(h, memory, self._weights(h, memory))

    def loss(self, h: Tensor, target: Tensor, memory: Memory, smoothing: float = 0.0) -> Tensor:
        return self._loss(h, target, memory, self._weights(h, memory), smoothing)

    def _log_probs(self, h: Tensor, memory: Memory, copy: Tensor) -> Tensor:
        logits, gate = self._parts(h, memory, copy)
        batch, length, words = logits.shape
        generated = F.log_sigmoid(gate) + log_softmax(logits)  # [B, T, V]
        generated = paddle.concat(
            [generated, paddle.full([batch, length, memory.extra], LOWEST, generated.dtype)], -1
        )  # [B, T, V + extra]
        ids = memory.copy_ids.unsqueeze(1).expand(copy.shape)  # [B, S] -> [B, T, S]
        mass = paddle.zeros([batch, length, words + memory.extra], copy.dtype)
        mass = paddle.put_along_axis(mass, ids, copy, -1, reduce="add", broadcast=False)
        return paddle.logaddexp(generated, F.log_sigmoid(-gate) + _log(mass))

    def _loss(self, h: Tensor, target: Tensor, memory: Memory, copy: Tensor, smoothing: float) -> Tensor:
        """As of `_log_probs`, which it does not call: copying changes P of the source's words only, so that those and
        the target are all that is computed beside the softmax over V: [B, T, 1 + S], and [B, S, S] for equal words."""
        logits, gate = self._parts(h, memory, copy)
        slots = memory.copy_ids.unsqueeze(1).expand(copy.shape)  # [B, S] -> [B, T, S]
        ids = paddle.concat([target.unsqueeze(-1), slots], -1)  # [B, T, 1 + S]: the target, then each source token
        known = ids < self.vocab_size
        index = paddle.where(known, ids, paddle.full_like(ids, self.pad_id))
        picked = paddle.take_along_axis(logits, index, -1)  # [B, T, 1 + S]
        total = log_sum_exp(logits)  # [B, T, 1]

        same = memory.copy_ids.unsqueeze(2) == memory.copy_ids.unsqueeze(1)  # [B, S, S]
        of_target = (copy * (slots == target.unsqueeze(-1)).astype(copy.dtype)).sum(-1, keepdim=True)
        of_slots = paddle.matmul(copy, same.astype(copy.dtype))  # [B, T, S]: all positions that hold the same word
        mass = _log(paddle.concat([of_target, of_slots], -1))  # [B, T, 1 + S]

        generated = F.log_sigmoid(gate) + picked - total  # log of g · softmax
        gain = F.softplus(mass - gate - picked + total)  # log P − generated: what copying adds
        copied = paddle.logaddexp(F.log_sigmoid(-gate) + mass, paddle.full_like(mass, LOWEST))
        log_p = paddle.where(known, generated + gain, copied)
        loss = -log_p[..., 0]  # [B, T]
        if not smoothing:
            return loss
        others = self.vocab_size - 1
        once = paddle.logical_not(paddle.tril(same.astype("int32"), -1).any(-1))  # [B, S]: its word's first occurrence
        once = once.unsqueeze(1) & known[..., 1:] & (slots != self.pad_id)
        every = logits.sum(-1) - logits[..., self.pad_id] + others * (F.log_sigmoid(gate) - total).squeeze(-1)
        every = every + (gain[..., 1:] * once.astype(gain.dtype)).sum(-1)  # Σ log P(v) over v ≠ pad
        return (1.0 - smoothing) * loss - smoothing * every / others


def attend(scores: Tensor, memory: Memory) -> Tensor:
    """Weights of the real source tokens, from scores [B, T, S]."""
    scores = full_precision(scores)
    shown = memory.valid.astype(scores.dtype).unsqueeze(1)  # [B, 1, S]
    # Paddle's softmax leaves 1e-28 to what is hidden, on a CPU, and a logarithm tells that from nothing. Where all is
    # hidden, its even weights stay: they sum to one.
    return F.softmax(scores + (1.0 - shown) * MASKED_SCORE, -1) * (shown + 1.0 - shown.max(-1, keepdim=True))


def _log(mass: Tensor) -> Tensor:
    """Its logarithm; very low but finite where it is 0."""
    return paddle.where(mass > 0, mass.clip(min=1.0e-30).log(), paddle.full_like(mass, MASKED_SCORE))
