"""A gated feed-forward sublayer."""

from __future__ import annotations

from collections.abc import Callable

import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import At, FeedForward, Norm, Tap


class SwiGLU(FeedForward):
    """Gated feed-forward, silu(x W_g) ⊙ (x W_u) before the output matrix (Shazeer 2020, arXiv:2002.05202).

    out = drop(n(silu(x W_g + b_g) ⊙ (x W_u + b_u))) W_o + b_o with silu(x) = x · sigmoid(x); n only under a placement
    that asks for an inner norm. x [B, T, C] → [B, T, C]. DeepNorm scales W_u and W_o, not the gate: as in a sublayer of
    two matrices, the output then scales with the square.

    Options:
        bias: whether the three matrices have one (the paper has none).
        inner_dropout: dropout on the hidden layer.
        equal_parameters: hidden width of 2/3 d_ff, so that three matrices have as many weights as two of d_ff.

    Raises:
        ValueError: inner_dropout is not in [0, 1).
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        inner_norm: Callable[[int], Norm] | None = None,
        bias: bool = True,
        inner_dropout: float = 0.0,
        equal_parameters: bool = False,
    ):
        super().__init__()
        width = max(1, 2 * d_ff // 3) if equal_parameters else d_ff
        self.gate = Linear(d_model, width, bias)
        self.up = Linear(d_model, width, bias)
        self.output = Linear(width, d_model, bias)
        self.dropout = Dropout(inner_dropout)
        self.inner_norm = inner_norm(width) if inner_norm is not None else None

    def forward(self, x: Tensor, at: At, tap: Tap) -> Tensor:
        gate = self.gate(x)  # [B, T, width]
        hidden = gate * F.sigmoid(gate) * self.up(x)  # not F.silu: on a CPU its gradient is NaN below -88
        if self.inner_norm is not None:
            hidden = self.inner_norm(hidden, at.valid, at.positions)
        return self.output(self.dropout(hidden))

    def branch_weights(self) -> list[Tensor]:
        return [self.up.weight, self.output.weight]
