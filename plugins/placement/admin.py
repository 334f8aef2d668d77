"""Post-norm whose residual weights are set from one pass over data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import paddle
from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.protocols import LayerSite, Placement, Profile, Sublayer, TokenInfo


class Admin(Placement):
    """Adaptive initialization: n(ω x + drop(f(x))), ω set from a pass over data (Liu 2020, arXiv:2004.08249).

    ω is a trainable vector [C] of each sublayer, 1 until `calibrate` sets all of its elements, from the second sublayer
    of a stack on, to ω_i = sqrt(Var[input of the stack] + Σ_{j<i} Var[f_j]), the sum running over all sublayers below:
    each branch then weighs in a deep post-norm stack what it would in pre-norm, and training starts without amplified
    updates. ω_1 stays 1, as in the authors' code (LiyuanLucasLiu/Transformer-Clinic): what enters the stack has its
    own variance, and no norm stands before it. Variances are those of real tokens. x [B, T, C].

    Raises:
        ValueError: in `calibrate`, the profile does not have one branch for each sublayer.
    """

    def __init__(self, *, sites: Sequence[LayerSite], d_model: int, **parent):
        super().__init__(sites=sites, d_model=d_model, **parent)
        one = nn.initializer.Constant(1.0)
        self.omegas = nn.ParameterList(
            [self.create_parameter([d_model], default_initializer=one) for _ in sites]  # [C] each
        )

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return self.norms[i](x * self.omegas[i] + self.drops[i](sublayer(x)), info.valid, info.positions)

    @classmethod
    def calibrate(cls, placements: Sequence[Placement], profile: Profile) -> None:
        omegas = [omega for placement in placements for omega in placement.omegas]
        if len(omegas) != len(profile.branch_variances):
            raise ValueError(
                _("`profile` must have a variance for each of the {sublayers} sublayers, but has {number}").format(
                    sublayers=len(omegas), number=len(profile.branch_variances)
                )
            )
        variance = profile.input_variance
        for omega, below in zip(omegas[1:], profile.branch_variances):
            variance += below
            omega.set_value(paddle.full_like(omega, math.sqrt(variance)))
