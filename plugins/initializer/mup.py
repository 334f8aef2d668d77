"""The maximal update parametrization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.protocols import Initializer, ParameterSite
from paddle_tfm.validators import positive


class MuP(Initializer):
    """muP: initial values and rates by which one learning rate fits every width (Yang 2022, arXiv:2203.03466).

    Table 3 of the paper, for Adam. m = d_model / base_width:

        matrix                      deviation           rate
        table of vectors            1 for its vectors   that of the schedule
        hidden [fan_in, fan_out]    1 / sqrt(fan_in)    / m
        head's output [C, V]        1 / C               / m

    and vectors, such as biases and gains, at the schedule's rate. So each step changes activations by as much whatever
    the width, where with equal rates it changes them by m times as much. The vectors of a table count after they are
    multiplied by sqrt(C), if they are (`model.scale_embedding`): deviation and rate are divided by that.

    Everything is widened together: d_ff in proportion to d_model, and more heads of one size, for which
    1/sqrt(head_dim) stays; the paper's 1/head_dim belongs to heads that grow. The head needs an output matrix of its
    own (`linear`): a tied table would need two rates. The optimizer's part is to follow the rate of each parameter, as
    Paddle's and ours do. The table holds for `adam` and its kin (`adamw`, `radam`, `lion`, `soap`, `schedule_free`);
    `sgd` has other exponents, and the updates of `muon` and of a relative `adafactor` have the matrix's size already. A
    decoupled decay falls with the rate, by m.

    Options:
        base_width: the d_model at which rates are those of the schedule: that of the model whose rate was tuned.

    Raises:
        ValueError: base_width is not positive.
    """

    def __init__(self, d_model: int, base_width: int = 256):
        positive(base_width=base_width)
        self.d_model, self.base_width = d_model, base_width

    def draw_at(self, site: ParameterSite, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        std = 1.0 / site.factor
        if _has_wide_input(site, role):
            is_output = site.path.startswith("head.") and shape[-1] != self.d_model
            std = 1.0 / shape[-2] if is_output else shape[-2] ** -0.5
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(std)

    def rate_factor(self, site: ParameterSite, shape: Sequence[int], role: str) -> float:
        return self.base_width / self.d_model if _has_wide_input(site, role) and len(shape) > 1 else 1.0 / site.factor


def _has_wide_input(site: ParameterSite, role: str) -> bool:
    """Whether it multiplies vectors as wide as the model: a matrix of a layer or of the head. Tables, of tokens or of
    distances, have a row for each of a number that does not grow."""
    return role == "weight" and (".layers." in site.path or site.path.startswith("head."))
