"""Post-norm in the lower layers of a stack, pre-norm in the upper ones."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols import LayerSite, Placement, Sublayer, TokenInfo
from paddle_tfm.validators import between


class MixLN(Placement):
    """Mix-LN: n(x + drop(f(x))) in the lower layers, x + drop(f(n(x))) in the upper (Li 2024, arXiv:2412.13795).

    Gradients of pre-norm become small in the upper layers, those of post-norm in the lower ones; each stands where its
    own stay large. Of the L layers of a stack the lowest ⌊`share` · L⌋ are post-norm, as in the paper; one at least, so
    that a small stack has both (the authors' code, github.com/pixeli99/MixLN, takes their number, by default 1). The
    stack ends with a norm. x [B, T, C].

    Options:
        share: of the layers that are post-norm; 0: exactly `pre`. The paper finds a quarter best.

    Raises:
        ValueError: share is not in [0, 1].
    """

    final_norm = True
    expected_failures: ClassVar[dict[str, str]] = {
        "identity_path": "its lower layers are post-norm, which normalizes the residual",
    }

    def __init__(self, *, sites: Sequence[LayerSite], share: float = 0.25, **parent):
        super().__init__(sites=sites, **parent)
        between("[0, 1]", share=share)
        whole = int(Fraction(str(share)) * sites[0].depth)  # of 0.58 · 50 a float makes 28
        self.post = sites[0].layer < (max(1, whole) if share else 0)

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        if self.post:
            return self.norms[i](x + self.drops[i](sublayer(x)), info.valid, info.positions)
        return x + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
