"""A softmax that spends little on rare words."""

from __future__ import annotations

from itertools import pairwise

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.language import _
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Head, Memory, maps_as
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.head._cross_entropy import full_precision, negative_log


class AdaptiveSoftmax(Head):
    """Adaptive softmax: frequent words in a short list, rare ones in clusters of their own (Grave 2017,
    arXiv:1609.04309).

    The vocabulary is cut at `cutoffs` c_1 < … < c_K into a short list, ids below c_1, and K clusters, ids c_i to
    c_{i+1}. p(v) = softmax(h W)_v for a word of the short list, and softmax(h W)_{cluster} · softmax(h P_i W_i)_v for a
    word of cluster i, with W [C, c_1 + K], P_i [C, C / factorⁱ] and W_i [C / factorⁱ, size]. The paper's factor is 4.
    Ids are in falling order of frequency in the training texts, so that clusters need no counting.

    h [B, T, C] → log-probabilities [B, T, V], exact for every word. The loss makes the logits of a cluster only for
    tokens whose target is in it; with label smoothing, which asks for every word's probability, it makes all.

    Options:
        cutoffs: where the vocabulary is cut; null: at an eighth and at half of it. Those that it does not reach are
            left out, and without any this is a plain softmax.
        factor: by how much each cluster's vectors are narrower than those before. bias: whether W and W_i have one.

    Raises:
        ValueError: `cutoffs` do not rise from 1 on; `factor` is below 1.
    """

    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        pad_id: int,
        cutoffs: list[int] | None = None,
        factor: int = 4,
        bias: bool = False,
    ):
        super().__init__()
        self.pad_id = pad_id
        first = max(vocab_size // 8, 5)  # the special tokens and a word at least
        cuts = [first, max(vocab_size // 2, 2 * first)] if cutoffs is None else cutoffs
        if any(a >= b for a, b in pairwise([0, *cuts])):
            raise ValueError(_("`cutoffs` must rise from 1 on, but is {cuts}").format(cuts=cuts))
        at_least(1, factor=factor)
        ends = [*(cut for cut in cuts if cut < vocab_size), vocab_size]
        self.words, self.short, self.clusters = vocab_size, ends[0], list(pairwise(ends))
        self.output = Linear(d_model, self.short + len(self.clusters), bias)
        widths = [max(1, d_model // factor ** (i + 1)) for i in range(len(self.clusters))]
        self.narrow = nn.LayerList([Linear(d_model, width, bias=False) for width in widths])
        self.rare = nn.LayerList(
            [Linear(width, end - begin, bias) for width, (begin, end) in zip(widths, self.clusters)]
        )
        for words in self.rare:
            maps_as(words.weight, "output")

    def _inside(self, cluster: int, h: Tensor) -> Tensor:
        """Logits of a cluster's words."""
        return self.rare[cluster](self.narrow[cluster](h))

    def loss(self, h: Tensor, target: Tensor, memory: Memory | None, smoothing: float = 0.0) -> Tensor:
        batch, length, width = h.shape
        target = target.flatten()  # [B, T] -> [B · T]
        real = paddle.nonzero(target != self.pad_id).squeeze(-1)
        h, words = paddle.gather(h.reshape([-1, width]), real), paddle.gather(target, real)  # [N, C], [N]
        loss = self._smoothed(h, words, smoothing) if smoothing else self._needed(h, words)
        return paddle.scatter(paddle.zeros([batch * length], loss.dtype), real, loss).reshape([batch, length])

    def _needed(self, h: Tensor, target: Tensor) -> Tensor:
        """−log p_target [N], from the clusters that hold a target."""
        first, inner = target, None
        for i, (begin, end) in enumerate(self.clusters):
            inside = (target >= begin) & (target < end)
            first = paddle.where(inside, paddle.full_like(target, self.short + i), first)
            rows = paddle.nonzero(inside).squeeze(-1)
            if rows.shape[0] == 0:
                continue
            within = paddle.gather(target, rows) - begin
            part = negative_log(lambda x, i=i: self._inside(i, x), paddle.gather(h, rows), within)
            part = paddle.scatter(paddle.zeros(target.shape, part.dtype), rows, part)
            inner = part if inner is None else inner + part
        loss = negative_log(self.output, h, first)
        return loss if inner is None else loss + inner

    def _smoothed(self, h: Tensor, target: Tensor, smoothing: float) -> Tensor:
        """(1 − ε) (−log p_target) + ε mean over v ≠ pad of (−log p_v), [N]."""
        log_p = self._log_probs(h)  # [N, V]
        of_target = paddle.take_along_axis(log_p, target.unsqueeze(-1), -1, broadcast=False).squeeze(-1)
        spread = paddle.full([self.words], 1.0 / (self.words - 1), log_p.dtype)
        spread[self.pad_id] = 0.0
        return -(1.0 - smoothing) * of_target - smoothing * paddle.matmul(log_p, spread)

    def log_probs(self, h: Tensor, memory: Memory | None) -> Tensor:
        return self._log_probs(h.reshape([-1, h.shape[-1]])).reshape([*h.shape[:-1], self.words])

    def _log_probs(self, h: Tensor) -> Tensor:
        """log p of every word, [N, C] → [N, V]."""
        first = ops.log_softmax(full_precision(self.output(h)))  # [N, c_1 + K]
        parts = [first[:, : self.short]]
        for i in range(len(self.clusters)):
            logits = full_precision(self._inside(i, h))
            of_cluster = first[:, self.short + i : self.short + i + 1]  # [N, 1]
            parts.append(ops.add_outer(logits, of_cluster - ops.log_sum_exp(logits), ops.row_of_ones(logits)))
        return paddle.concat(parts, -1)
