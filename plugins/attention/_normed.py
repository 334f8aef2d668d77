"""Queries, keys or values of every head through a norm, where the placement asks for it."""

from __future__ import annotations

from collections.abc import Callable

from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Norm


class NormedLinear(Linear):
    """norm(x W + b), the norm over the channels of each head: [B, T, C] → [B, T, H·D]. All heads share its weights [D].

    Raises:
        ValueError: the norm has running statistics, for which it would have to know which tokens are real.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool, norm: Norm, head_dim: int):
        super().__init__(in_features, out_features, bias)
        if type(norm).discrepancy is not Norm.discrepancy:
            raise ValueError(
                _(
                    "a norm with running statistics ({name}) cannot be that of queries, keys and values, which the "
                    "placement asks for; choose one that looks at a token alone, such as `layer` or `rms`"
                ).format(name=type(norm).__name__)
            )
        self.norm, self.head_dim = norm, head_dim

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        batch, length, width = y.shape
        heads = y.reshape([batch, length * (width // self.head_dim), self.head_dim])  # [B, T, H·D] -> [B, T·H, D]
        return self.norm(heads).reshape([batch, length, width])


def projection(
    in_features: int, out_features: int, bias: bool, norm: Callable[[int], Norm] | None, head_dim: int
) -> Linear:
    """x W + b, through a norm of each head if there is one."""
    if norm is None:
        return Linear(in_features, out_features, bias)
    return NormedLinear(in_features, out_features, bias, norm(head_dim), head_dim)
