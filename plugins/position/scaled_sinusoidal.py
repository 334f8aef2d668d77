"""Sinusoidal positions whose weight beside the embeddings is learned."""

from __future__ import annotations

from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import PositionalEncoding, keep_initial
from paddle_tfm_plugins.position._sinusoid import Sinusoid


class ScaledSinusoidal(PositionalEncoding):
    """Sinusoidal positions times a trained number, added to the embeddings (Li 2018, arXiv:1809.08895).

    x + α PE(p), with PE(p, 2i) = sin(p / base^(2i / C)), PE(p, 2i + 1) = cos(p / base^(2i / C)) as in `sinusoidal`. A
    model whose embeddings are larger or smaller than the sinusoid can put both on one scale. Each stack has an α of its
    own.

    x [B, T, C], positions [B|1, T] → [B, T, C]; α is one number.

    Options: `initial` is what α starts from, `base` sets the longest wavelength, about 2π · base.

    Raises:
        ValueError: `base` is not positive.
    """

    def __init__(self, d_model: int, initial: float = 1.0, base: float = 10000.0):
        super().__init__()
        self.sinusoid = Sinusoid(d_model, base)
        self.alpha = keep_initial(
            self.create_parameter([1], default_initializer=nn.initializer.Constant(float(initial)))
        )

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        waves = self.sinusoid(positions).astype(self.alpha.dtype).expand(x.shape)
        scaled = ops.outer(waves.reshape([-1, 1]), self.alpha.reshape([1, 1]))
        return x + scaled.reshape(x.shape).astype(x.dtype)
