"""The maximal update parametrization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.language import _
from paddle_tfm.protocols import Initializer, ParameterSite
from paddle_tfm.validators import positive


class MuP(Initializer):
    """muP: initial values and rates by which one learning rate fits every width (Yang 2022, arXiv:2203.03466).

    Table 3 of the paper, for Adam. m = d_model / base_width:

        matrix                        deviation           rate
        table of vectors              1 for its vectors   that of the schedule
        input, fan_in without width   1 / sqrt(fan_in)    that of the schedule
        hidden [fan_in, fan_out]      1 / sqrt(fan_in)    / m
        output, fan_out without width 1 / fan_in          / m

    and whatever is no linear map, such as biases, gains, kernels and tables of positions, at the schedule's rate. So
    each step changes activations by as much whatever the width, where with equal rates it changes them by m times as
    much. Outputs are the matrix of the head, and what a component marks so (`maps_as`): routers, gates of one number.
    The vectors of a table count after they are multiplied by sqrt(C), if they are (`model.scale_embedding`): deviation
    and rate are divided by that.

    Everything is widened together: d_ff in proportion to d_model, and more heads of one size, for which
    1/sqrt(head_dim) stays; the paper's 1/head_dim belongs to heads that grow. The head needs an output matrix of its
    own (`linear`): a table that is also the embedding would need two rates, which the authors' `MuSharedReadout` makes
    up for by dividing the logits by m. The table holds for optimizers whose updates are like Adam's (`adam`, `adamw`,
    `radam`, `lion`, `schedule_free`, `adafactor`); a recipe with another is refused: `sgd` has other exponents, the
    updates of `muon` and of a relative `adafactor` have the matrix's size already, and those of `soap` have in its
    basis. A decoupled decay falls with the rate, by m.

    Options:
        base_width: the d_model at which rates are those of the schedule: that of the model whose rate was tuned.

    Raises:
        ValueError: base_width is not positive; the head has no output matrix of its own.
    """

    def __init__(self, d_model: int, base_width: int = 256):
        positive(base_width=base_width)
        self.d_model, self.base_width = d_model, base_width

    def inspect(self, sites: Sequence[ParameterSite]) -> None:
        if not any(site.path.startswith("head.") and site.maps == "output" for site in sites):
            raise ValueError(
                _(
                    "it gives the head's output matrix initial values and a rate of its own, and this head shares that "
                    "of an embedding, or has none; set `model.head=linear`"
                )
            )

    def draw_at(self, site: ParameterSite, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        std = 1.0 / site.factor
        if site.maps is not None:
            std = 1.0 / shape[-2] if site.maps == "output" else shape[-2] ** -0.5
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(std)

    def rate_factor(self, site: ParameterSite, shape: Sequence[int], role: str) -> float:
        return self.base_width / self.d_model if site.maps in ("hidden", "output") else 1.0 / site.factor
