"""Placements: their norms, by where these stand."""

from __future__ import annotations

from typing import Any

from paddle_tfm.protocols import Refusal
from paddle_tfm_plugins.placement.layer_scale import LayerScale
from paddle_tfm_plugins.placement.parallel import Parallel
from paddle_tfm_plugins.placement.peri import Peri
from paddle_tfm_plugins.placement.post import Post
from paddle_tfm_plugins.placement.pre import Pre
from paddle_tfm_plugins.placement.sandwich import Sandwich
from paddle_tfm_plugins.placement.steps import Steps


def pre(placement: Pre) -> dict[str, Any]:
    """A norm before each sublayer."""
    return {"before": list(placement.norms)}


def post(placement: Post) -> dict[str, Any]:
    """A norm after each sum."""
    return {"after_sum": list(placement.norms)}


def sandwich(placement: Sandwich) -> dict[str, Any]:
    """A norm on both sides of each sublayer."""
    return {"before": list(placement.norms), "after": list(placement.branch_norms)}


def peri(placement: Peri) -> dict[str, Any]:
    """And one on what enters the stack."""
    return {**sandwich(placement), "embedding": placement.embedding_norm}


def layer_scale(placement: LayerScale) -> dict[str, Any]:
    """The scales are multiplied into the output matrices."""
    return {"before": list(placement.norms), "branch_scales": [scale.numpy() for scale in placement.scales]}


def parallel(placement: Parallel) -> dict[str, Any]:
    """One norm for all sublayers of a layer."""
    return {"shared": placement.norms[0]}


def steps(placement: Steps) -> dict[str, Any]:
    """Plain pre-norm or post-norm, with norms of what enters and leaves the stack. Dropout is of training."""
    befores, after, top = (
        {each.replace("d", "") for each in letters}
        for letters in (placement.before, [placement.after], [placement.top])
    )
    around = {"embedding": placement.embedding_norm, "top": placement.top_norm}
    if top <= {"", "n"} and (befores, after) == ({"n"}, {"a"}):
        return {"before": list(placement.before_norms.values()), **around}
    if top <= {"", "n"} and (befores, after) == ({""}, {"an"}):
        return {"after_sum": list(placement.norms), **around}
    raise Refusal("has steps in an order that CTranslate2 does not have")
