"""YaRN: rotary positions for texts longer than those of training."""

from __future__ import annotations

import math

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.validators import at_least, positive
from paddle_tfm_plugins.position._rotation import frequencies, rotate


class YaRN(PositionalEncoding):
    """Rotary positions whose slow pairs are interpolated for texts s times as long (Peng 2023, arXiv:2309.00071).

    Pair i turns by p · ((1 − γ_i) θ_i / s + γ_i θ_i), θ_i = base^(−2i / D): a pair that turns more than `fast` times
    within L = `trained_length` stays as it was (γ = 1), one that turns less than `slow` times is slowed down s =
    `factor` times (γ = 0), those between get some of both ("NTK-by-parts"). Queries and keys are also made 0.1 ln(s) +
    1 times as long, so that scores are divided by the paper's temperature t, sqrt(1 / t) = 0.1 ln(s) + 1.

    Between the two, γ falls linearly with i, from the last pair that turns `fast` times to the first that turns `slow`
    times: the authors' code, which Transformers, vLLM and others follow. In the paper (section 3.2) it falls linearly
    with the number of turns r_i = L θ_i / 2π, γ = (r − slow) / (fast − slow), which slows most pairs between them more.

    It has no parameters: a model trained with `rotary` and the same `base` can be loaded with it, and trained further
    on longer texts, as the paper does, or not.

    q, k [B, H, T, D], positions [B|1, T] → [B, H, T, D]. Any integer position; the angles are computed in float64.

    Options:
        factor: s, the length of the texts to come by that of training (the paper trains with 16 and 32).
        trained_length: L; None: max_length / factor.
        base: sets the longest wavelength before scaling, about 2π · base.
        fast: β, slow: α of the paper.

    Raises:
        ValueError: `head_dim` is odd; `base` is not above 1, `factor` below 1, `trained_length` below 1, `slow` not
            positive, or `fast` not above `slow`.
    """

    def __init__(
        self,
        head_dim: int,
        max_length: int,
        factor: float = 16.0,
        trained_length: int | None = None,
        base: float = 10000.0,
        fast: float = 32.0,
        slow: float = 1.0,
    ):
        super().__init__()
        at_least(1, factor=factor, trained_length=trained_length)
        positive(slow=slow)
        if fast <= slow:
            raise ValueError(
                _("`fast` must be above `slow`, but {fast:g} is not above {slow:g}").format(fast=fast, slow=slow)
            )
        if base <= 1:
            raise ValueError(_("`base` must be above 1, but is {base:g}").format(base=base))
        self.factor, self.base = factor, base
        self.length = max(1.0, max_length / factor) if trained_length is None else float(trained_length)
        theta = frequencies(head_dim, base).numpy()
        gamma = self._kept(head_dim, fast, slow)
        scaled = (1.0 - gamma) * theta / factor + gamma * theta
        self.register_buffer("frequency", paddle.to_tensor(scaled), persistable=False)  # float64 [D/2]
        stretch = paddle.to_tensor(0.1 * math.log(factor) + 1.0, dtype="float64")
        self.register_buffer("stretch", stretch, persistable=False)

    def _kept(self, head_dim: int, fast: float, slow: float) -> np.ndarray:
        """γ of each pair [D / 2]."""

        def pair(turns: float) -> float:
            """The place i at which a pair turns so many times within L."""
            return head_dim * math.log(self.length / (2 * math.pi * turns)) / (2 * math.log(self.base))

        first, last = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), head_dim - 1)
        ramp = (np.arange(head_dim // 2) - first) / max(last - first, 0.001)
        return 1.0 - np.clip(ramp, 0.0, 1.0)

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self._turn(q, positions)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self._turn(k, positions)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        return rotate(x, positions.unsqueeze([1, -1]).astype(self.frequency.dtype) * self.frequency, self.stretch)
