"""Normalization of token vectors."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols.layer_component import LayerComponent
from paddle_tfm.protocols.tap import current_tap


class Norm(LayerComponent):
    """y = (x − center) / (size + eps) · weight + bias, in some form: x [B, T, C] → [B, T, C].

    Token-wise norms ignore `valid` and `positions`. BatchNorm weighs tokens by `valid` bool [B, T] (True: real, False:
    padding), per-position BatchNorm indexes its statistics by `positions` int64 [B|1, T]. Sums over tokens go through
    `paddle_tfm.ranks.sum_over_ranks`, so that they are of the whole batch where several processes share it.

    Givens:
        d_model: the width C of what is normalized. site: where it stands. max_length: the longest text.

    Invariances: those in `invariances` below are checked; besides, padding changes no other token.

    Example::

        from paddle import nn
        from paddle_tfm.protocols import Norm
        from paddle_tfm.validators import positive

        class MaxNorm(Norm):  # each token's largest channel becomes ±1
            invariances = frozenset({"scale"})

            def __init__(self, d_model: int, eps: float = 1e-6):
                super().__init__()
                positive(eps=eps)
                self.eps = eps
                self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))

            def forward(self, x, valid=None, positions=None):
                return x / (x.abs().max(-1, keepdim=True) + self.eps) * self.weight  # [B, T, C]
    """

    kind: ClassVar[str] = "norm"
    givens = frozenset({"d_model", "site", "max_length"})
    invariances: ClassVar[frozenset[str]] = frozenset()
    """What the output does not depend on, of {"scale", "shift"}: each token's channels multiplied by a positive number,
    or increased by one number; {"channel_scale", "channel_shift"}: the same for a channel over all tokens, in training.
    Up to `eps`, and as initialized."""
    momentum: float | str | None = None
    """Of a norm with running statistics: the weight of the newest batch in them, or the name of a schedule for it."""
    population: int = 0
    """Of a norm with running statistics: from how many training batches the trainer re-estimates them before each
    evaluation (`pooling`); 0: from none, evaluation uses them as training left them."""

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """x [B, T, C] → [B, T, C]."""
        raise NotImplementedError

    def pooling(self) -> AbstractContextManager[None]:
        """A block at whose end the running statistics are those of all real tokens that passed through `forward` within
        it, in training mode: each token with the same weight, nothing left of what they were before. The passes
        themselves are those of training, and change no other state. So they are the statistics of the training texts
        under fixed weights (Wu & Johnson 2021, arXiv:2105.07576). A norm without running statistics has none."""
        return nullcontext()

    def add_aux_loss(self, name: str, value: Tensor) -> None:
        """To be called in `forward`, where the norm adds to the training loss: `value` is a scalar already weighted,
        per target token, as of `Tap.add_aux_loss`. A norm that is used outside of a model adds nothing."""
        tap = current_tap()
        if tap is not None:
            tap.add_aux_loss(name, value)

    def discrepancy(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> dict[str, Tensor]:
        """How far the running statistics are from those of this batch, which `forward` would be called with: scalars,
        by name "mean" |μ_run − μ_B| / σ_B and "deviation" |σ_run / σ_B − 1|, each a mean over channels (cf. Wang 2022,
        arXiv:2210.05153). Nothing is changed. A norm without running statistics has none: {}."""
        return {}
