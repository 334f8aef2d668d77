"""What holds for a sublayer that a placement may give a norm of its own."""

from __future__ import annotations

import numpy as np
from paddle import Tensor

from paddle_tfm.protocols import Norm
from paddle_tfm.recipe.model_plan import NORMS_INSIDE
from paddle_tfm.testing.kinds.layers.attention import AttentionProbe
from paddle_tfm.testing.kinds.layers.feed_forward import FeedForwardProbe
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, relative_distance

MIN_EFFECT = 1e-3  # of the largest output


class _Cut(Norm):
    """Lets every second channel pass, none where there is only one, times `rest` the others. Which arguments a call
    `lacks` is added to that set."""

    def __init__(self, rest: float, lacks: set[str]):
        super().__init__()
        self.rest, self.lacks = rest, lacks

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        self.lacks |= {name for name, got in (("valid", valid), ("positions", positions)) if got is None}
        kept = np.arange(x.shape[-1]) % 2 == 1
        return x * np.where(kept, 1.0, self.rest).astype("float32")


@check(
    "attention",
    "feed_forward",
    invariant="a norm passed to its constructor as `inner_norm` or `projection_norm` is applied; `inner_norm` "
    "gets `valid` and `positions`",
    consequence="a placement that needs it (Sub-LN, HybridNorm) computes something else, and its parameters never"
    " learn; a norm over the batch counts padding",
    hint="`self.inner_norm(context, info.valid, info.positions)` before the output projection; a class without a place "
    "for it leaves the parameter out of its constructor",
)
def norms_inside(subject: ComponentUnderTest) -> Result:
    names = [name for name in NORMS_INSIDE if subject.takes(name)]
    for name in names:
        lacks: set[str] = set()
        usual, cut = (_output(subject, name, rest, lacks) for rest in (1.0, 0.0))
        if relative_distance(usual, cut) < MIN_EFFECT:
            return Failed(f"`{name}` is given, but what it computes changes nothing")
        if lacks and name == "inner_norm":
            return Failed(
                f"`{name}` is called without `{'` and `'.join(sorted(lacks))}`: a norm over the batch needs them"
            )
    return Passed() if names else Skip("its constructor takes no norm")


def _output(subject: ComponentUnderTest, name: str, rest: float, lacks: set[str]) -> np.ndarray:
    norm = {name: lambda width: _Cut(rest, lacks)}
    if subject.kind == "attention":
        return AttentionProbe(subject, norms=norm).attended()
    probe = FeedForwardProbe(subject, norms=norm)
    return probe(probe.x)
