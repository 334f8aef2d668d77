"""BatchNorm that counts padding."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm_plugins.norm.batch import BatchNorm


class CountsPadding(BatchNorm):
    """Wrong on purpose: BatchNorm whose statistics count padding, as nn.BatchNorm1D's do.

    Symptom: training changes when a batch is padded further; where batches hold texts of one length, hardly.
    x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        **BatchNorm.expected_failures,
        "padding_in_training": "the mistake: padding is part of the statistics",
    }

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        return super().forward(x, None, positions)
