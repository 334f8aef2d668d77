"""BatchNorm that never uses its running statistics."""

from __future__ import annotations

from typing import ClassVar, Literal

from paddle import Tensor

from paddle_tfm_plugins.norm.batch import BatchNorm


class BatchStatistics(BatchNorm):
    """Wrong on purpose: BatchNorm with the statistics of the batch in evaluation too.

    Symptom: an output depends on the rest of the batch; in a decoder that generates a token at a time, statistics are
    of single tokens. x [B, T, C] → [B, T, C].

    Options: those of `batch`; `masked`: whether padding is left out of the statistics. Without it an output depends on
    how far its batch is padded, too.
    """

    expected_failures: ClassVar[dict[str, str]] = {
        **BatchNorm.expected_failures,
        "causal": "the mistake: statistics are of the whole batch, later tokens too",
        "neighbours": "the mistake: statistics are of the whole batch",
        "cached": "the mistake: a step's statistics are of its tokens alone",
        "beams": "the mistake: a step's statistics are of its rows alone",
        "precision": "the mistake: statistics are of the whole batch, large sentences too",
        "stateless": "the mistake: evaluation updates the running values",
        "choices": "without `masked` padding counts in the statistics too, which is what the option is there to show",
    }

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        momentum: float | Literal["cumulative"] = 0.1,
        population: int = 0,
        masked: bool = True,
    ):
        super().__init__(d_model, eps, momentum, population)
        self.masked = masked

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        training, self.training = self.training, True
        out = super().forward(x, valid if self.masked else None, positions)
        self.training = training
        return out
