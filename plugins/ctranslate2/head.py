"""Heads: the output matrix and its bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddle_tfm.protocols import Refusal
from paddle_tfm_plugins.head.linear import LinearHead
from paddle_tfm_plugins.head.tied import TiedHead


def linear(head: LinearHead) -> dict[str, Any]:
    """A matrix of its own."""
    return _softmax(head, head.output.weight.numpy().T, head.output.bias)


def tied(head: TiedHead) -> dict[str, Any]:
    """The target embedding's."""
    return _softmax(head, head.words.numpy(), head.bias)


def _softmax(head: LinearHead | TiedHead, weight: np.ndarray, bias: Any) -> dict[str, Any]:
    if head.cap is not None:
        raise Refusal("caps its logits, which CTranslate2 does not")
    return {"weight": weight, "bias": None if bias is None else bias.numpy()}
