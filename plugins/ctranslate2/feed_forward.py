"""Feed-forward sublayers: the activation by CTranslate2's name, and two matrices or three."""

from __future__ import annotations

from typing import Any

from paddle_tfm.protocols import Refusal
from paddle_tfm_plugins.feed_forward._gated import Gated
from paddle_tfm_plugins.feed_forward._two_layers import TwoLayers
from paddle_tfm_plugins.feed_forward.geglu import GEGLU
from paddle_tfm_plugins.feed_forward.gelu import GELU
from paddle_tfm_plugins.feed_forward.reglu import ReGLU
from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.feed_forward.swiglu import SwiGLU
from paddle_tfm_plugins.feed_forward.swish import Swish

ACTIVATIONS = {ReLU: "RELU", GELU: "GELU", SwiGLU: "SWISH", GEGLU: "GELU", ReGLU: "RELU"}  # silu is SWISH there


def two_layers(feed_forward: TwoLayers) -> dict[str, Any]:
    """A matrix, the activation, and another."""
    return {"activation": ACTIVATIONS[type(feed_forward)], "inner": feed_forward.inner, "output": feed_forward.output}


def swish(feed_forward: Swish) -> dict[str, Any]:
    """x σ(βx) with the two β that CTranslate2 has."""
    if feed_forward.beta not in (1.0, 1.702):
        raise Refusal(f"has beta {feed_forward.beta:g}, and CTranslate2 only 1 and 1.702")
    activation = "SWISH" if feed_forward.beta == 1.0 else "GELU_SIGMOID"
    return {"activation": activation, "inner": feed_forward.inner, "output": feed_forward.output}


def gated(feed_forward: Gated) -> dict[str, Any]:
    """Two matrices side by side, one of them through the activation, and a third."""
    matrices = {"inner": feed_forward.gate, "factor": feed_forward.up, "output": feed_forward.output}
    return {"activation": ACTIVATIONS[type(feed_forward)], **matrices}
