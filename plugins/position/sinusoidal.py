"""Sinusoidal positions, as in the original Transformer."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm_plugins.position._sinusoid import Sinusoid


class Sinusoidal(PositionalEncoding):
    """Sines and cosines of the position, added to the embeddings (arXiv:1706.03762, section 3.5).

    PE(p, 2i) = sin(p / base^(2i / C)), PE(p, 2i + 1) = cos(p / base^(2i / C)): sine and cosine take turns. With an odd
    C the last channel is a sine without its cosine. Any integer position; the angles are computed in float64.

    With `halves` as in the authors' own code (tensor2tensor) and in Marian: PE(p, i) = sin(p / base^(i / (C/2 − 1))),
    PE(p, C/2 + i) = cos(p / base^(i / (C/2 − 1))), all sines before all cosines.

    x [B, T, C], positions [B|1, T] → x + PE [B, T, C].

    Options: `base` sets the longest wavelength, about 2π · base. `halves`: the order of the channels, above.

    Raises:
        ValueError: `base` is not positive; with `halves` d_model is odd or below 4.
    """

    def __init__(self, d_model: int, base: float = 10000.0, halves: bool = False):
        super().__init__()
        self.sinusoid = Sinusoid(d_model, base, halves)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.sinusoid.waves(positions, x)
