"""Embeddings scaled by addition."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm_plugins.position.sinusoidal import Sinusoidal


class PlusSqrt(Sinusoidal):
    """Wrong on purpose: embedding + sqrt(d_model) instead of embedding · sqrt(d_model), and sinusoidal positions.

    Symptom: a slow start: the constant and the positions are much larger than the embeddings. For a recipe with
    `scale_embedding: false`, whose embeddings are not scaled before. x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "magnitude": "the mistake: a constant of sqrt(d_model) is added to every token"
    }

    def __init__(self, d_model: int):
        super().__init__(d_model)
        self.constant = d_model**0.5

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return super().embed(x + self.constant, positions)
