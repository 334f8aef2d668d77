"""What parameters may hold: what training makes of them, and what their class begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.data.vocabulary import PAD, UNKNOWN
from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import LayerSite, keep_initial
from paddle_tfm.testing.invariants import LAYERS
from paddle_tfm.testing.invariants.numerics import not_finite
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.models.size import MAX_LENGTH, USUAL, VOCABULARY
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result

FACTORS = (-1.0, -0.3)  # of what a parameter begins with


@check(
    *LAYERS,
    invariant="outputs and gradients stay finite whether a parameter becomes positive or negative",
    consequence="one step too far, and the run ends in NaN",
    hint="a logarithm, a root, a power or a quotient of a parameter as it is: make it positive (softplus, "
    "exp), or bound it",
)
def any_sign(subject) -> Result:
    scene: Scene = subject.long_scenes[0]
    for factor in FACTORS:
        if _with_factor(scene, factor) is None:
            continue
        for name in _own_parameters(scene):
            if failed := _with_factor(scene, factor, name):
                return failed
        return _with_factor(scene, factor) or Passed()
    return Passed()


def _own_parameters(scene: Scene) -> list[str]:
    model = scene.model("float64")
    own = {id(parameter) for layer in scene.instances(model) for parameter in layer.parameters()}
    return [name for name, parameter in model.named_parameters() if id(parameter) in own]


def _with_factor(scene: Scene, factor: float, name: str = "") -> Failed | None:
    """Failed where numbers are not finite with this parameter of the component ("": each) times `factor`."""
    model, names = scene.model("float64"), {name} if name else {*_own_parameters(scene)}
    with paddle.no_grad():
        for each, parameter in model.named_parameters():
            if each in names:
                parameter.set_value(parameter * factor)
    return not_finite(scene, model, scene.batch(), f"{name or 'its parameters'} times {factor:g}")


@check(
    *LAYERS,
    invariant="a class's own initial values of a matrix or table are kept: without `keep_initial` the initializer"
    " overwrites them",
    consequence="the method starts from wrong values: a gate that is nearly shut in the paper is open at random",
    hint="`keep_initial(self.create_parameter(…))`, where the values belong to the method",
)
def own_start(subject: ComponentUnderTest) -> Result:
    one, other = (_alone(subject, seed) for seed in (1, 2))
    values = {name: parameter.numpy() for name, parameter in other.named_parameters()}
    for name, parameter in one.named_parameters():
        if parameter.ndim > 1 and not getattr(parameter, "keep_initial", False):
            if np.array_equal(parameter.numpy(), values[name]):  # what is drawn differs
                return Failed(f"the class fills {name} {list(parameter.shape)}, and the initializer draws it again")
    return Passed()


def _alone(subject: ComponentUnderTest, seed: int) -> nn.Layer:
    """The component as its constructor leaves it."""
    paddle.seed(seed)
    np.random.seed(seed)
    size: dict[str, Any] = {
        "d_model": USUAL.d_model,
        "num_heads": USUAL.num_heads,
        "head_dim": USUAL.d_model // USUAL.num_heads,
    }
    size |= {"d_ff": USUAL.d_ff, "max_length": MAX_LENGTH}
    if subject.kind == "placement":
        sites = [LayerSite("encoder", name, 0, 2, 2) for name in ("self", "feed_forward")]
        return subject.build(**size, sites=sites, norm=lambda site, width: nn.LayerNorm(width))
    if subject.kind == "head":
        embedding = Embedding(VOCABULARY, USUAL.d_model, PAD, UNKNOWN, True)
        keep_initial(embedding.weight)  # it is not the head's
        return subject.build(**size, vocab_size=VOCABULARY, pad_id=PAD, unknown_id=UNKNOWN, embedding=embedding)
    return subject.build(subject.site(), **size)
