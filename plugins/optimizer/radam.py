"""Adam with a rectified variance of its adaptive rate."""

from __future__ import annotations

import math

import paddle
from paddle import Tensor

from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule, update_moments
from paddle_tfm_plugins.optimizer.adam import Adam

MIN_LENGTH = 4.0  # ρ_t, the length of the moving average, above which the variance of Adam's step is tractable


class RAdam(UpdateRule, Adam):
    """RAdam: Adam whose first steps are shortened while their variance is high (Liu 2019, arXiv:1908.03265).

    m = β1 m + (1 − β1) g, v = β2 v + (1 − β2) g², m̂ = m / (1 − β1ᵗ), and ρ_t = ρ_∞ − 2 t β2ᵗ / (1 − β2ᵗ) with ρ_∞ =
    2 / (1 − β2) − 1 is the length of the moving average v. Where ρ_t > 4, w -= rate · r_t · m̂ / (sqrt(v / (1 − β2ᵗ)) +
    ε) with r_t = sqrt((ρ_t − 4)(ρ_t − 2) ρ_∞ / ((ρ_∞ − 4)(ρ_∞ − 2) ρ_t)); before that, w -= rate · m̂. So a warm-up is
    built in: r_t rises from near 0 to 1. ε is not in the paper's algorithm.

    The threshold is the paper's (algorithm 2). Paddle's own RAdam waits until ρ_t > 5, and takes one more step of
    momentum alone. With β2 of 0.6 or less, ρ_∞ ≤ 4 and momentum is all there is.

    Options:
        beta1, beta2: decay rates of the moments. epsilon: added to the root.

    Raises:
        ValueError: beta1 or beta2 is not in [0, 1); epsilon is not positive.
    """

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        update_moments(state, gradient, self.beta1, self.beta2)
        step = state["first"] * (rate / (1.0 - self.beta1**t))
        rectifier = rectification(self.beta2, t)
        if rectifier is not None:
            step = step * rectifier / (paddle.sqrt(state["second"] / (1.0 - self.beta2**t)) + self.epsilon)
        parameter.subtract_(step)


def rectification(beta2: float, t: int) -> float | None:
    """r_t; None while the variance is intractable."""
    longest = 2.0 / (1.0 - beta2) - 1.0
    length = longest - 2.0 * t * beta2**t / (1.0 - beta2**t)
    if length <= MIN_LENGTH:
        return None
    return math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
