"""A pointer-generator that knows what it has copied."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Memory, maps_as
from paddle_tfm.validators import not_negative
from paddle_tfm_plugins.head.pointer import PointerGenerator, attend


class PointerCoverage(PointerGenerator):
    """Pointer-generator that knows what it has attended to and shall not do so again (See 2017, arXiv:1704.04368).

    As `pointer`, with the coverage c_t = Σ_{t' < t} a_t' of each source position, the sum of the weights so far, in the
    keys: a_t = softmax(h W_q (memory W_k + c_t w_c)ᵀ / sqrt(C)). In training a token's loss has `coverage_weight` ·
    Σ_s min(a_t, c_t) added, what it attends to once more. Decoding carries c as the head's state [B, S].

    The paper's scores are additive, and c_t is one more term in them; w_c [1, C] is that term for scaled dot products.
    It adds the coverage loss for the last 1% of training only; here it is there from the beginning. Steps follow one
    another in training too, so that a long output takes longer than with `pointer`.

    Options:
        coverage_weight: λ of the paper. bias: of the output.

    Raises:
        ValueError: coverage_weight is negative.
    """

    expected_failures = {
        "loss_is_log_prob": "the loss that is trained has the coverage loss added",
        "smoothing": "the loss that is trained has the coverage loss added",
    }

    def __init__(self, d_model: int, *, coverage_weight: float = 1.0, **parent):
        not_negative(coverage_weight=coverage_weight)
        super().__init__(d_model, **parent)
        self.coverage_weight = coverage_weight
        self.coverage = Linear(1, d_model, bias=False)
        maps_as(self.coverage.weight, "input")

    def _covered(self, h: Tensor, memory: Memory, covered: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(Weights of the source [B, T, S], and their sum [B, S] with those of earlier steps, `covered`)."""
        query = self.query(h) * h.shape[-1] ** -0.5  # [B, T, C]
        q = paddle.matmul(query, self.key.weight, transpose_y=True)  # as in `pointer`, no keys are computed
        scores = paddle.matmul(q, memory.x, transpose_y=True)  # [B, T, S]
        slope = paddle.matmul(query, self.coverage.weight, transpose_y=True)  # [B, T, 1]
        weights: list[Tensor] = []
        covered = paddle.zeros_like(memory.valid, scores.dtype) if covered is None else covered
        for t in range(h.shape[1]):
            now = scores[:, t : t + 1] + slope[:, t : t + 1] * covered.unsqueeze(1).astype(scores.dtype)
            weights.append(attend(now, memory))  # [B, 1, S]
            covered = covered + weights[-1].squeeze(1)
        return paddle.concat(weights, 1), covered

    def _weights(self, h: Tensor, memory: Memory) -> Tensor:
        return self._covered(h, memory)[0]

    def loss(self, h: Tensor, target: Tensor, memory: Memory, smoothing: float = 0.0) -> Tensor:
        copy = self._weights(h, memory)
        repeated = paddle.minimum(copy, copy.cumsum(1) - copy).sum(-1)  # [B, T]
        return self._loss(h, target, memory, copy, smoothing) + self.coverage_weight * repeated

    def step(self, h: Tensor, memory: Memory, state: tuple[Tensor, ...] = ()) -> tuple[Tensor, tuple[Tensor, ...]]:
        copy, covered = self._covered(h, memory, *state)
        return self._log_probs(h[:, -1:], memory, copy[:, -1:]).squeeze(1), (covered,)
