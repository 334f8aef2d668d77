"""Norms: gain and shift of each channel, and eps. Without a shift CTranslate2 computes an RMS norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paddle_tfm_plugins.norm.layer import LayerNorm
from paddle_tfm_plugins.norm.rms import RMSNorm
from paddle_tfm_plugins.norm.scale import ScaleNorm


def layer(norm: LayerNorm) -> dict[str, Any]:
    """A shift of zeros where it has none."""
    shift = np.zeros(norm.weight.shape, np.float32) if norm.bias is None else norm.bias.numpy()
    return {"gamma": norm.weight.numpy(), "beta": shift, "eps": norm.eps}


def rms(norm: RMSNorm) -> dict[str, Any]:
    """The same formula."""
    return {"gamma": norm.weight.numpy(), "eps": norm.eps}


def scale(norm: ScaleNorm) -> dict[str, Any]:
    """g x / ‖x‖ is the RMS norm with the weights g / sqrt(C). Its eps is added where ours is the least."""
    gain = norm.weight.numpy() * np.ones(norm.width, np.float32) / math.sqrt(norm.width)
    return {"gamma": gain.astype(np.float32), "eps": norm.least / norm.width}
