"""Power normalization: batch normalization without the mean, by a running quadratic mean."""

from __future__ import annotations

from typing import ClassVar

import paddle
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm.ranks import on_gradient, sum_over_ranks
from paddle_tfm.validators import between, not_negative
from paddle_tfm_plugins.norm._running import Pool, PooledNorm


class PowerNorm(PooledNorm):
    """Power normalization by a running quadratic mean, with an approximate backward pass (Shen 2020, arXiv:2003.07845).

    x̂ = x / sqrt(ψ² + eps), y = weight · x̂ + bias at real tokens, 0 at padding; ψ² [C] is a mean of squares of each
    channel over real tokens, and nothing is subtracted. x [B, T, C], `valid` bool [B, T] (None: all are real) →
    [B, T, C]; `positions` do not matter. With g = ∂L/∂x̂, and means over the n real tokens of the batch:

    - The first `warmup` training passes (PN-V): ψ² = mean(x²) of the batch itself, and its exact gradient,
      ∂L/∂x = (g − x̂ · mean(g x̂)) / ψ.
    - Later passes: ψ² is the running value from before this pass, so that no token depends on another, and the mean in
      the gradient gives way to a running value ν: ∂L/∂x = (g − x̂ ν) / ψ. The paper proves such gradients bounded.
    - After every training pass, ψ² ← ψ² + momentum · (mean(x²) − ψ²); after every backward pass to x, ν moves by what
      the approximation leaves of the gradient along x̂, ν ← ν + gradient_momentum · mean((g − x̂ ν) x̂).
    - Evaluation: the running ψ², which stays as it is.

    The running values start at ψ² = 1 and ν = 0; they and the number of passes are buffers, part of a checkpoint. A
    batch without a real token leaves both values as they are.

    Know before use: the paper has it in the encoder, with layer normalization in the decoder: ``norm: {encoder: power,
    decoder: layer}``. In the warm-up each output depends on every other token of the batch; after it, an input far
    larger than those before is not brought down. An update of several batches (`train.accumulate`) counts as several
    passes. After the warm-up the gradient is that of no function, and a second backward pass through the same output
    moves ν again. The authors' released code also divides each token by the root mean square of groups of its channels
    beforehand, has the approximate gradient during the warm-up too, and divides gradients by the batch's ψ after it;
    none of this is done here.

    Options: `warmup` is the number of passes with the batch's own statistics (the released code takes that of the
    learning rate's warm-up); `eps` is added to ψ²; `momentum` and `gradient_momentum` are 1 − α in the paper's terms,
    the weights of the new batch in ψ² and in ν. `population`: from how many training batches ψ² is
    re-estimated before each evaluation, as in `batch`; the paper does not.

    Raises:
        ValueError: `eps` is not positive, `momentum` or `gradient_momentum` is not in (0, 1], or `warmup` or
            `population` is negative.
    """

    least = 1
    invariances = frozenset({"channel_scale"})
    expected_failures: ClassVar[dict[str, str]] = {
        "causal_in_training": "in the warm-up the quadratic mean is over all tokens of the batch, also later ones of "
        "the same sentence; after it, and in evaluation, nothing leaks",
        "neighbours_in_training": "in the warm-up the quadratic mean is over the sentences of the batch; after it, "
        "and in evaluation, they do not see each other",
        "gradients": "after the warm-up the backward pass is the paper's approximation, the gradient of no function",
    }

    def __init__(
        self,
        d_model: int,
        warmup: int = 200,
        eps: float = 1e-5,
        momentum: float = 0.1,
        gradient_momentum: float = 0.1,
        population: int = 0,
    ):
        super().__init__(d_model, eps, population)
        not_negative(warmup=warmup)
        between("(0, 1]", momentum=momentum, gradient_momentum=gradient_momentum)
        self.warmup = warmup
        self.momentum, self.gradient_momentum = momentum, gradient_momentum
        self.register_buffer("running_square", paddle.ones([d_model], self.weight.dtype))  # ψ²
        self.register_buffer("running_gradient", paddle.zeros([d_model], self.weight.dtype))  # ν
        self.register_buffer("passes", paddle.zeros([1], "int64"))

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows, real = self._tokens(x, valid)
        square = self.running_square.clone().unsqueeze(0)  # [1, C]
        if self.training:
            warming_up = self.passes.item() < self.warmup
            batch, count = self._quadratic_mean(rows if warming_up else rows.detach(), real)
            self._remember(batch.detach(), count)
            square = batch if warming_up else square
        normal = rows * ops.outer(real, paddle.rsqrt(square + self.eps))
        if self.training and not normal.stop_gradient:
            normal = self._watched(normal, count, exact=warming_up)
        scaled = normal * ops.outer(real, self.weight.unsqueeze(0))
        return ops.restore(ops.add_outer(scaled, real, self.bias.unsqueeze(0)), x)

    @paddle.no_grad()
    def discrepancy(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> dict[str, Tensor]:
        """The "deviation" |ψ_run / ψ_B − 1| only: there is no mean."""
        batch, _ = self._quadratic_mean(*self._tokens(x, valid))
        ratio = paddle.sqrt(self.running_square + self.eps) / paddle.sqrt(batch + self.eps)
        return {"deviation": (ratio - 1.0).abs().mean()}

    def _quadratic_mean(self, rows: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of squares of each channel over the real tokens [1, C], the running one if there is none; and how
        many there are."""
        count = sum_over_ranks(real.sum())
        batch = sum_over_ranks(ops.sum_over_rows(real / count.clip(min=1.0), paddle.square(rows)))
        return paddle.where(count > 0.0, batch, self.running_square.unsqueeze(0)), count

    @paddle.no_grad()
    def _remember(self, batch: Tensor, count: Tensor) -> None:
        """Move ψ² towards the batch's [1, C], and count the pass."""
        if self._pool is not None:
            self._pool.add(batch, paddle.zeros_like(batch), count)
            return
        moved = self.running_square + (batch.squeeze(0) - self.running_square) * self.momentum
        paddle.assign(moved, output=self.running_square)
        paddle.assign(self.passes + 1, output=self.passes)

    def _end(self, pool: Pool) -> None:
        pool.store(self.running_square, pool.mean)

    def _watched(self, normal: Tensor, count: Tensor, exact: bool) -> Tensor:
        """x̂ [N, C], whose gradient moves ν on its way back; unless it is to stay `exact`, x̂ ν is taken away from it
        first."""
        ones = ops.column_of_ones(normal)
        values = normal.detach()  # `normal` itself would hold its own graph for ever

        @paddle.no_grad()
        def amend(gradient: Tensor) -> Tensor:
            nu = self.running_gradient.unsqueeze(0)  # [1, C]
            remainder = gradient - values * ops.outer(ones, nu)
            weights = ones / count.clip(min=1.0)  # of padding too, where x̂ is 0
            change = sum_over_ranks(ops.sum_over_rows(weights, remainder * values)).squeeze(0)  # [C]
            paddle.assign(self.running_gradient + change * self.gradient_momentum, output=self.running_gradient)
            return gradient if exact else remainder

        return on_gradient(normal, amend)
