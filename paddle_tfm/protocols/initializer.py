"""Initial values of weight matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from paddle_tfm.protocols.component import Component


@dataclass(frozen=True)
class ParameterSite:
    """Where a parameter stands: its dotted `path` in the model, such as "decoder.layers.0.feed_forward.output.weight";
    the number of residual `branches` of its stack (two or three a layer; 0 outside the stacks); the depth of the model;
    for a table of tokens, the `factor` that its vectors are multiplied by; what it `maps`, see `maps_as`."""

    path: str
    branches: int = 0
    encoder_layers: int = 0
    decoder_layers: int = 0
    factor: float = 1.0
    maps: str | None = "hidden"


class Initializer(Component):
    """Initial values of every parameter of two or more dimensions that is not marked by `keep_initial`.

    W ~ some distribution of its shape, such as uniform in ±sqrt(6 / (fan_in + fan_out)).

    Givens:
        d_model: C.

    Invariances: a parameter's values depend on the seed and on its path in the model, not on other parameters.

    Example::

        from paddle_tfm.protocols import Initializer

        class Signs(Initializer):  # ±gain / sqrt(fan_in)
            def __init__(self, gain: float = 1.0):
                self.gain = gain

            def draw(self, rng, shape, role):
                fan_in = shape[-1] if role == "embedding" else shape[-2]
                return (rng.choice([-1.0, 1.0], shape) * self.gain / fan_in**0.5).astype("float32")
    """

    kind: ClassVar[str] = "initializer"
    givens = frozenset({"d_model"})

    def draw(self, rng, shape: Sequence[int], role: str):
        """A NumPy array of `shape` ([fan_in, fan_out] for a matrix, [V, C] for a table). `role`: weight | embedding.
        `rng` is a NumPy generator keyed by (seed, the parameter's path)."""
        raise NotImplementedError

    def draw_at(self, site: ParameterSite, rng, shape: Sequence[int], role: str):
        """`draw` for the parameter at `site`. Override it, and not `draw`, where values depend on place or depth."""
        return self.draw(rng, shape, role)

    def inspect(self, sites: Sequence[ParameterSite]) -> None:
        """Called with the sites of all parameters before any is drawn.

        Raises: ValueError, where it does not fit the model.
        """

    def rate_factor(self, site: ParameterSite, shape: Sequence[int], role: str) -> float:
        """By how much the learning rate of the parameter at `site` is multiplied, whether it is drawn or not (muP).
        Paddle's optimizers do it by ``optimize_attr["learning_rate"]``. A recipe whose initializer overrides this needs
        an optimizer that is `adam_like`."""
        return 1.0
