"""Positional encodings: how a position reaches the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.protocols.component import Component


class PositionalEncoding(Component, nn.Layer):
    """How a position reaches the model. This base class is the encoding "none"; override what the method uses.

    All are pure functions of positions (law 4). Givens: d_model, num_heads (score heads), head_dim, site, max_length.
    """

    kind: ClassVar[str] = "position"
    givens = frozenset({"d_model", "num_heads", "head_dim", "site", "max_length"})
    per_layer: bool = False  # a table for each layer (Shaw) or one for the stack (T5)
    _WAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "embed": ("embed",),
        "rotate": ("query", "key"),
        "bias": ("bias",),
        "scores": ("scores",),
        "values": ("values",),
    }

    def uses(self) -> frozenset[str]:
        """The ways in which this encoding acts, of the names in `Attention.supports`: those that it overrides."""
        mine, base = type(self), PositionalEncoding
        return frozenset(
            way
            for way, names in self._WAYS.items()
            if any(getattr(mine, name) is not getattr(base, name) for name in names)
        )

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x [B, T, C] at the bottom of the stack → the same with positions added (sinusoidal, learned)."""
        return x

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        """q [B, H, T, D] before the scores (rotary, xPos)."""
        return q

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        """k [B, H, T, D] before it is cached."""
        return k

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """[B|1, H|1, Tq, Tk] added to the scaled scores, free of content (ALiBi, T5); once a pass for all layers."""
        return None

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """[B, H, Tq, Tk] added to q kᵀ before the division by sqrt(D) (Shaw, Transformer-XL)."""
        return None

    def values(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """[B, H, Tq, D] added to weights · V (Shaw's value term)."""
        return None

    def remap(self, positions: Tensor, draw: Callable[[], object]) -> Tensor:
        """Positions [B|1, T] → positions, once a training pass and before anything else; `draw()` gives a NumPy
        generator that is a function of (seed, step)."""
        return positions
