"""Normal values, those at the end of a residual branch smaller the more branches there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.protocols import ParameterSite
from paddle_tfm_plugins.initializer.normal import Normal


class GPT2(Normal):
    """Normal with deviation `std`; the outputs of N residual branches times 1/sqrt(N) (GPT-2, Radford 2019).

    N branches that add values of one variance add N times that variance to the stream: with the factor, whatever the
    depth, once. N counts the branches of the parameter's stack: two a layer, three where there is cross-attention. An
    output is a matrix that its layer calls `output`, as `c_proj` in the authors' code; `single_head` has none.

    Options:
        std: the deviation of all others.

    Raises:
        ValueError: std is not positive.
    """

    def draw_at(self, site: ParameterSite, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        values = self.draw(rng, shape, role)
        if site.branches and site.path.endswith(".output.weight"):
            values *= np.float32(site.branches**-0.5)
        return values
