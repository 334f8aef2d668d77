"""A gated feed-forward sublayer."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm_plugins.feed_forward._gated import Gated


class SwiGLU(Gated):
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

    def activation(self, x: Tensor) -> Tensor:
        return ops.silu(x)
