"""A norm, a feed-forward or an encoding of anybody's, `forward(x)`, as a component."""

from __future__ import annotations

from collections.abc import Mapping

import paddle
from paddle import Tensor, nn

from paddle_tfm.errors import UserError
from paddle_tfm.protocols import FeedForward, Norm, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.adapters.arguments import OWN_DROPOUT, adapted, built, first, without_dropout, without_width


def norm(cls: type, options: Mapping[str, object]) -> type[Norm]:
    """A norm `forward(x)`."""

    class OrdinaryNorm(Norm):
        def __init__(self, d_model: int):
            super().__init__()
            self.layer = built(cls, {"d_model": d_model}, options)

        def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
            return first(self.layer(x))

    return adapted(cls, OrdinaryNorm, {})


def feed_forward(cls: type, options: Mapping[str, object]) -> type[FeedForward]:
    """A feed-forward `forward(x)`: what stands between the residual and its norm, without both."""

    class OrdinaryFeedForward(FeedForward):
        def __init__(self, d_model: int, d_ff: int, dropout: float):
            super().__init__()
            # `multiple`: what LLaMA's rounds d_ff up to, 256 by default
            self.layer = built(cls, {"d_model": d_model, "d_ff": d_ff, "dropout": dropout, "multiple": 1}, options)

        def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
            return first(self.layer(x))

    return adapted(cls, OrdinaryFeedForward, {"repeatable": OWN_DROPOUT} | without_dropout(cls) | without_width(cls))


class OrdinaryEncoding(PositionalEncoding):
    """A layer `forward(x)` that returns x with positions added, x · sqrt(d_model) with positions added, or the
    positions' vectors alone. A model multiplies by sqrt(d_model) before its encoding: where the layer does it too, it
    gets x / sqrt(d_model)."""

    layer: nn.Layer
    takes_ids = False
    """Whether `forward` takes ids [B, T], of which it asks how many they are."""

    def settle(self, width: int) -> None:
        """Work out what `forward` takes.

        Raises:
            UserError: neither tokens [B, T, C] nor ids [B, T].
        """
        x = paddle.zeros([1, 2, width])
        try:
            with paddle.no_grad():
                out = self._call(x)
            if list(out.shape) not in ([1, 2, width], [2, width]):
                raise ValueError(f"it makes {out.shape} of {x.shape}")
        except Exception as error:
            self.takes_ids = True
            try:
                with paddle.no_grad():
                    self._call(x)
            except Exception:
                text = " ".join(str(error).split())[:300]
                raise UserError(f"{type(self).__name__}.forward fails on x [1, 2, {width}]: {text}") from error

    def _call(self, text: Tensor) -> Tensor:
        return first(self.layer(paddle.ones(text.shape[:2], "int64") if self.takes_ids else text))

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x stands at its positions in a longer text whose other tokens are zero."""
        batch, length, width = x.shape
        factor = self.factor(x)
        positions = positions.expand([batch, length])  # [B|1, T] -> [B, T]
        longest = int(positions.max()) + 1
        rows = paddle.stack([paddle.arange(batch).unsqueeze(1).expand([batch, length]), positions.astype("int64")], -1)
        text = paddle.scatter_nd_add(paddle.zeros([batch, longest, width], x.dtype), rows, x / (factor or 1.0))
        out = self._call(text)
        if list(out.shape) != [batch, longest, width] and out.shape[-2:] != [longest, width]:
            raise ValueError(f"{type(self).__name__} makes {out.shape} of {text.shape}")
        at_positions = paddle.gather_nd(out.expand(text.shape), rows)
        return at_positions if factor else at_positions + x

    def factor(self, x: Tensor) -> float:
        """What the layer multiplies tokens like x by: sqrt(d_model), 0 where it returns positions without tokens, and
        else 1: what it does then is for the checks to see."""
        with paddle.no_grad():
            zero = paddle.zeros([1, 2, x.shape[-1]], x.dtype)
            token = zero + paddle.cos(paddle.arange(x.shape[-1], dtype=x.dtype) ** 2)  # which no norm takes away
            moved = self._call(token) - self._call(zero)
        if not bool(moved.any()):
            return 0.0
        factor = x.shape[-1] ** 0.5
        return factor if bool(paddle.allclose(moved, token * factor, rtol=1e-3, atol=1e-3)) else 1.0


def position(cls: type, options: Mapping[str, object]) -> type[OrdinaryEncoding]:
    """An encoding `forward(x)`."""

    class Encoding(OrdinaryEncoding):
        def __init__(self, d_model: int, max_length: int):
            super().__init__()
            # How far its table goes is its author's to say: as far as any check looks.
            values = {"d_model": d_model, "max_length": 4 * max_length, "dropout": 0.0, "pad_id": 0}
            self.layer = built(cls, values, options)
            self.settle(d_model)

    return adapted(cls, Encoding, {"repeatable": OWN_DROPOUT})
