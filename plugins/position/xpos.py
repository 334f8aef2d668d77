"""xPos: rotary positions whose scores fade with distance."""

from __future__ import annotations

import math

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm.validators import positive
from paddle_tfm_plugins.position._rotation import frequencies, rotate

MAX_GROWTH = 1e16  # of a key: its square is far below the largest float32


class XPos(PositionalEncoding):
    """Rotated queries and keys whose scores fade exponentially with distance (Sun 2022, arXiv:2212.10554).

    Neighbouring channels (2i, 2i + 1) are a complex number z. A query at n becomes z ζ_i^(n / s) e^(i n θ_i), a key at
    m z ζ_i^(−m / s) e^(i m θ_i), with θ_i = base^(−2i / D), ζ_i = (2i / D + γ) / (1 + γ) and s = `scale_base`: each
    pair's part of a score is rotated by (n − m) θ_i, as in rotary, and multiplied by ζ_i^((n − m) / s) ≤ 1. The pairs
    that turn fastest fade fastest.

    q, k [B, H, T, D], positions [B|1, T] → [B, H, T, D]. Keys are cached as they are: the power is one of the position
    itself, and not of its distance from the middle of the sentence, which a key could not know.

    Keys grow with their position, so that the power stops where the fastest pair has grown 10^16 times: at position
    `reach` = 36.8 s / ln((1 + γ) / γ), which is 15,056 for the defaults. Up to there scores are the paper's, and finite
    in float32; later positions turn on, but all have the power of `reach`, so that what lies beyond it does not fade.

    Options:
        base: sets the longest wavelength, about 2π · base.
        scale_base: s, the distance over which a pair fades by its ζ.
        gamma: γ; the smaller, the faster the first pairs fade.

    Raises:
        ValueError: the attention is not causal, where n − m may be negative and a score would grow with distance;
            `head_dim` is odd; `base`, `scale_base` or `gamma` is not positive.
    """

    def __init__(
        self, head_dim: int, site: LayerSite, base: float = 10000.0, scale_base: float = 512.0, gamma: float = 0.4
    ):
        super().__init__()
        if not site.causal:
            raise ValueError(
                _(
                    "its scores fade towards the past and grow towards the future, which {stack}.{sublayer} sees; "
                    "choose it where attention is causal: {{encoder: rotary, decoder: xpos}}"
                ).format(stack=site.stack, sublayer=site.sublayer)
            )
        positive(scale_base=scale_base, gamma=gamma)
        self.base, self.scale_base, self.gamma = base, scale_base, gamma
        self.reach = math.floor(math.log(MAX_GROWTH) * scale_base / math.log((1 + gamma) / gamma))
        self.register_buffer("frequency", frequencies(head_dim, base), persistable=False)  # float64 [D/2]
        zeta = (np.arange(0, head_dim, 2) / head_dim + gamma) / (1 + gamma)
        self.register_buffer("rate", paddle.to_tensor(np.log(zeta) / scale_base), persistable=False)  # float64 [D/2]

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self._turn(q, positions, 1)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self._turn(k, positions, -1)

    def _turn(self, x: Tensor, positions: Tensor, sign: int) -> Tensor:
        p = positions.unsqueeze([1, -1]).astype(self.frequency.dtype)  # [B|1, 1, T, 1]
        return rotate(x, p * self.frequency, paddle.exp(sign * p.clip(0, self.reach) * self.rate))
