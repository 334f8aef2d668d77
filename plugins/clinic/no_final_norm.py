"""Pre-norm without its final norm."""

from __future__ import annotations

from typing import ClassVar

from paddle_tfm_plugins.placement.pre import Pre


class NoFinalNorm(Pre):
    """Wrong on purpose: pre-norm without the norm at the end of the stack.

    Symptom: logits grow with depth and in training, the loss is larger at the start and unstable later. x [B, T, C].
    """

    final_norm = False
    expected_failures: ClassVar[dict[str, str]] = {
        "output_normalized": "the mistake: nothing normalizes the residual stream"
    }
