"""Normalization of token vectors."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.protocols.component import Component


class Norm(Component, nn.Layer):
    """Normalization of [B, T, C]. Token-wise norms ignore `valid` and `positions`; BatchNorm weighs by `valid` bool
    [B, T], per-position BatchNorm indexes by `positions` int64 [B|1, T]. Givens: d_model (the width), site, max_length."""

    kind: ClassVar[str] = "norm"
    givens = frozenset({"d_model", "site", "max_length"})
    invariances: ClassVar[frozenset[str]] = frozenset()
    """What the output does not depend on, of {"scale", "shift"}: each token's channels multiplied by a positive number, or
    increased by one number; {"channel_scale", "channel_shift"}: the same for a channel over all tokens, in training. Up to
    `eps`, and as initialized."""
    momentum: float | None = None
    """Of a norm with running statistics: the weight of the newest batch in them. The trainer sets it while they are
    estimated anew."""

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def discrepancy(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> dict[str, Tensor]:
        """How far the running statistics are from those of this batch, which `forward` would be called with: scalars, by
        name "mean" |μ_run − μ_B| / σ_B and "deviation" |σ_run / σ_B − 1|, each a mean over channels (cf. Wang 2022,
        arXiv:2210.05153). Nothing is changed. A norm without running statistics has none: {}."""
        return {}
