"""A call of a component on random inputs, and the sizes that it is built at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from paddle import Tensor, nn

from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.protocols import LayerSite
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest

WIDTHS = ((12, 3), (12, 4), (16, 4), (16, 2))  # (d_model, heads), until the component takes one
# So many heads that groups of them are several, of several heads each, and wider: of 4 channels D ** -0.5 is 2 / D,
# and 2 i / D is i / 2.
MANY_HEADS = ((40, 4), (60, 6), (32, 4), (64, 8), (16, 4))
SPREAD = 0.6  # of parameters, so that none stays at an initial zero
D_FF, MAX_LENGTH = 10, 96


@dataclass
class Case:
    """One call: `inputs` are float64 and get gradients, `facts` is what a reference may ask for, `real` which
    numbers of the output are compared, of its shape or wherever it stands for several (None: all), `axes` what those of
    the output are."""

    what: str
    component: Any
    call: Callable[[Any, dict[str, Tensor]], Tensor]  # of a component that was built with `size`
    inputs: dict[str, np.ndarray]
    size: dict[str, Any]
    facts: dict[str, object] = field(default_factory=dict)
    real: np.ndarray | None = None
    function: str = "forward"
    asks: frozenset[str] = frozenset()  # it is for references that ask for one of these; none: for all
    axes: tuple[str, ...] = ()

    @property
    def layer(self) -> nn.Layer | None:
        """What has parameters; None: a schedule."""
        return self.component if isinstance(self.component, nn.Layer) else None

    def counted(self, shape: Sequence[int]) -> np.ndarray:
        """bool: which numbers of the output are compared."""
        return np.broadcast_to(True if self.real is None else self.real, shape)

    def parameters(self) -> dict[str, np.ndarray]:
        """Name → float64, of parameters and buffers."""
        if self.layer is None:
            return {}
        named = {**parameters_of(self.layer), **dict(self.layer.named_buffers())}
        return {name: tensor.numpy().astype(np.float64) for name, tensor in named.items()}

    def ours(self, inputs: dict[str, Tensor]) -> Tensor:
        return self.call(self.component, inputs)


def parameters_of(layer: nn.Layer) -> dict[str, Tensor]:
    """Path → parameter. Those of an ordinary layer are called as its author calls them: `inside` is where it stands in
    what makes a component of it."""
    prefix = getattr(layer, "inside", "")
    return {name.removeprefix(prefix): parameter for name, parameter in layer.named_parameters()}


def built(
    subject: ComponentUnderTest,
    site: LayerSite | None,
    rng: np.random.Generator,
    widths=WIDTHS,
    *,
    embedding: Callable[[int], nn.Layer] | None = None,
    **kwargs: object,
) -> tuple[nn.Layer, dict]:
    """The component at the first of these widths that it takes, its parameters drawn, in evaluation; and what it was
    built with. `embedding`: d_model → the target's, for a head."""
    error = None
    for d_model, heads in widths:
        size = {"d_model": d_model, "num_heads": heads, "head_dim": d_model // heads, "d_ff": D_FF, **kwargs}
        if embedding is not None:
            size["embedding"] = embedding(d_model)
        try:
            layer = subject.build(site, **{"max_length": MAX_LENGTH, **size})
        except RecipeError as refusal:
            error = error or refusal
            continue
        for parameter in layer.parameters():
            value = rng.normal(scale=SPREAD, size=parameter.shape)
            parameter.set_value(value.astype(str(parameter.dtype).removeprefix("paddle.")))
        layer.eval()
        return layer, {"max_length": MAX_LENGTH, **size, "heads": heads, "site": site}
    raise error if error is not None else UserError(f"{subject} cannot be built")


def of_few_and_many_heads(
    subject: ComponentUnderTest, site: LayerSite, rng: np.random.Generator
) -> Iterator[tuple[nn.Layer, dict]]:
    """The component at a width that it takes, and again with more and wider heads: where groups of heads are several,
    of several each, their order shows, and where a head has several pairs of channels, exponents and scales do."""
    layer, size = built(subject, site, rng)
    yield layer, size
    if size["heads"] < MANY_HEADS[0][1]:
        try:
            more = built(subject, site, rng, MANY_HEADS)
        except RecipeError:
            return
        yield more
