"""Placements: their norms, by where these stand."""

from __future__ import annotations

from typing import Any

from paddle_tfm_plugins.placement.layer_scale import LayerScale
from paddle_tfm_plugins.placement.parallel import Parallel
from paddle_tfm_plugins.placement.peri import Peri
from paddle_tfm_plugins.placement.post import Post
from paddle_tfm_plugins.placement.pre import Pre
from paddle_tfm_plugins.placement.sandwich import Sandwich


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
