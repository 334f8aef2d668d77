"""A norm or an encoding of anybody's, `forward(x)`, as a component."""

from __future__ import annotations

from collections.abc import Mapping

import paddle
from paddle import Tensor

from paddle_tfm.protocols import Norm, PositionalEncoding
from paddle_tfm.testing.adapters.arguments import built, first


def norm(cls: type, options: Mapping[str, object]) -> type[Norm]:
    """A norm `forward(x)`."""

    class OrdinaryNorm(Norm):
        expected_failures = getattr(cls, "expected_failures", {})

        def __init__(self, d_model: int):
            super().__init__()
            self.layer = built(cls, {"d_model": d_model}, options)

        def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
            return first(self.layer(x))

    OrdinaryNorm.__name__ = OrdinaryNorm.__qualname__ = cls.__name__
    return OrdinaryNorm


def position(cls: type, options: Mapping[str, object]) -> type[PositionalEncoding]:
    """An encoding `forward(x)` that returns x with positions added, or the positions' vectors alone."""

    class OrdinaryEncoding(PositionalEncoding):
        expected_failures = getattr(cls, "expected_failures", {})

        def __init__(self, d_model: int, max_length: int):
            super().__init__()
            # How far its table goes is its author's to say: as far as any check looks.
            values = {"d_model": d_model, "max_length": 4 * max_length, "dropout": 0.0}
            self.layer = built(cls, values, options)

        def embed(self, x: Tensor, positions: Tensor) -> Tensor:
            """x stands at its positions in a longer text whose other tokens are zero."""
            batch, length, width = x.shape
            positions = positions.expand([batch, length])  # [B|1, T] -> [B, T]
            longest = int(positions.max()) + 1
            rows = paddle.stack(
                [paddle.arange(batch).unsqueeze(1).expand([batch, length]), positions.astype("int64")], -1
            )
            text = paddle.scatter_nd_add(paddle.zeros([batch, longest, width], x.dtype), rows, x)
            out = first(self.layer(text))
            if list(out.shape) != [batch, longest, width] and out.shape[-2:] != [longest, width]:
                raise ValueError(f"{cls.__name__} makes {out.shape} of {text.shape}")
            at_positions = paddle.gather_nd(out.expand(text.shape), rows)
            return at_positions + x if self._ignores_tokens(x) else at_positions

        def _ignores_tokens(self, x: Tensor) -> bool:
            """Whether the layer returns positions without tokens."""
            with paddle.no_grad():
                zero = paddle.zeros([1, 2, x.shape[-1]], x.dtype)
                other = paddle.cos(paddle.arange(x.shape[-1], dtype=x.dtype) ** 2)  # which no norm takes away
                return bool((first(self.layer(zero)) == first(self.layer(zero + other))).all())

    OrdinaryEncoding.__name__ = OrdinaryEncoding.__qualname__ = cls.__name__
    return OrdinaryEncoding
