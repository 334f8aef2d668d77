"""Positional encodings: how a position reaches the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols.layer_component import LayerComponent


class PositionalEncoding(LayerComponent):
    """How a position reaches the model: overrides of the hooks below. This base class is the encoding "none".

    Every hook is a pure function of positions int64 [B|1, T], never of a tensor's length or of the place in a batch:
    the same tokens, decoded one by one, get the same encoding. An attention calls the hooks that it `supports`.

    Givens:
        d_model: C. num_heads: H, the score heads of the attention. head_dim: D, their width. max_length: the longest
            text.
        site: where the attention stands; `site.causal` in the decoder's self-attention.

    Invariances: positions alone matter; a relative encoding does not change when all positions are shifted.
    Expected failures: `expected_failures` names checks such as "relative" and "nearness", each with a reason.
    Raises: ValueError in the constructor, where an option is out of range or the site makes no sense.

    Example::

        from paddle_tfm.protocols import PositionalEncoding

        class LinearDistance(PositionalEncoding):  # scores fall with distance, in all heads alike
            def __init__(self, slope: float = 0.1):
                super().__init__()
                self.slope = slope

            def bias(self, q_positions, k_positions):
                distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs()  # [B|1, Tq, Tk]
                return -self.slope * distance.unsqueeze(1).astype("float32")  # [B|1, 1, Tq, Tk]
    """

    kind: ClassVar[str] = "position"
    givens = frozenset({"d_model", "num_heads", "head_dim", "site", "max_length"})
    widens: ClassVar[bool] = False  # whether query and key return more channels than they get (PoPE)
    per_layer: bool = False  # whether each layer has a table of its own (Shaw), or the stack one (T5)
    _HOOKS: ClassVar[dict[str, tuple[str, ...]]] = {
        "embed": ("embed",),
        "rotate": ("query", "key"),
        "bias": ("bias",),
        "scores": ("scores",),
        "values": ("values",),
    }

    def uses(self) -> frozenset[str]:
        """The positional-encoding hooks that it overrides, of the names in `Attention.supports`."""
        cls, base = type(self), PositionalEncoding
        return frozenset(
            hook
            for hook, methods in self._HOOKS.items()
            if any(getattr(cls, method) is not getattr(base, method) for method in methods)
        )

    def share(self, lowest: PositionalEncoding) -> None:
        """Take from the encoding of the stack's lowest layer what is not per layer; called where `per_layer`."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x [B, T, C] at the bottom of the stack → the same with positions added (sinusoidal, learned)."""
        return x

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        """q [B, H, T, D], not yet scaled, before the scores (rotary, xPos). Where it `widens`, scores are still divided
        by sqrt(D)."""
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

    def remap(self, positions: Tensor, draw: Callable[[], object] | None) -> Tensor:
        """Positions [B|1, T] → where they stand for all that goes by position; once a pass, before anything else.
        `draw()` gives a NumPy generator that is a function of (seed, step); in evaluation there is none, `draw` is
        None."""
        return positions
