"""PoPE: what a word says is the size of a channel, where it stands is the angle."""

from __future__ import annotations

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import PositionalEncoding, keep_initial, no_decay
from paddle_tfm.validators import between, positive


class PoPE(PositionalEncoding):
    """PoPE: what a channel says is its size, where it stands its angle (Gopalakrishnan 2025, arXiv:2509.10534).

    score(t, s) = Σ_c softplus(q_tc) softplus(k_sc) cos((s − t) θ_c + δ_c) / sqrt(D), θ_c = base^(−c / D), c from 0.
    Each channel is a complex number, so that there are D frequencies where `rotary` has D / 2, and nothing that q and k
    say turns an angle. δ_c shifts the distance that channel c asks for; each head of each layer learns its own, [H, D],
    clipped to [−2π, 0].

    q, k [B, H, T, D], positions [B|1, T] → [B, H, T, 2 D], real parts before imaginary ones; the cache has twice as
    large keys. The queries' angle is t θ_c − δ_c, where the paper has s θ_c + δ_c for the keys': the scores are the
    same, and heads may share keys. The paper prints θ_c without the minus, which would turn all channels by more than
    a radian a token. It is the only part of a `chain` that turns or adds to scores.

    Options:
        base: sets the longest wavelength, about 2π · base.
        spread: δ starts uniform in [−spread, 0]. The paper has both 0, which it needs beyond the trained length, and
            2π.

    Raises:
        ValueError: `base` is not positive; `spread` is not in [0, 2π].
    """

    per_layer = widens = True

    def __init__(self, head_dim: int, num_heads: int, base: float = 10000.0, spread: float = 0.0):
        super().__init__()
        positive(base=base)
        between(f"[0, {2 * math.pi}]", spread=spread)
        self.base = base
        frequency = float(base) ** (-np.arange(head_dim) / head_dim)
        self.register_buffer("frequency", paddle.to_tensor(frequency), persistable=False)  # float64 [D]
        start = nn.initializer.Uniform(-spread, 0.0)
        self.delta = no_decay(keep_initial(self.create_parameter([num_heads, head_dim], default_initializer=start)))

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        delta = self.delta.clip(-2 * math.pi, 0.0).astype(self.frequency.dtype)
        return _polar(q, self._angle(positions) - delta.unsqueeze(1))  # [B|1, H, T, D]

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return _polar(k, self._angle(positions))

    def _angle(self, positions: Tensor) -> Tensor:
        return positions.unsqueeze([1, -1]).astype(self.frequency.dtype) * self.frequency  # [B|1, 1, T, D]


def _polar(x: Tensor, angle: Tensor) -> Tensor:
    """softplus(x) e^(i angle) [B, H, T, D] → its real and its imaginary part [B, H, T, 2 D]."""
    size = F.softplus(x)
    return paddle.concat([size * part.astype(size.dtype) for part in (paddle.cos(angle), paddle.sin(angle))], -1)
