"""KERPLE: scores that fall with distance in a shape that each head learns."""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.validators import one_of

MIN_INITIAL = 0.01  # of r1 and r2
MAX_INITIAL = {"log": (2.0, 1.0), "power": (1.0, 1.99)}  # kernel -> of r1 and of r2


class Kerple(PositionalEncoding):
    """A penalty on distance whose size and shape each head learns (Chi 2022, arXiv:2205.09921).

    bias[h, i, j] = −r1 log(1 + r2 |i − j|), or with kernel `power` −r1 |i − j|^r2, r1 and r2 being positive numbers of
    head h; in `power` r2 is below 2. They are the softplus of trained vectors (r2 of `power`: twice the sigmoid), so
    that no step of the optimizer leads out of their range; the authors' code clips them instead. One pair of vectors
    [H] serves all layers of a stack. Where attention is not causal the bias is the same in both directions.

    Heads start from random numbers, as in the authors' code: r1 uniform in [0.01, 2] and r2 in [0.01, 1] for `log`, r1
    in [0.01, 1] and r2 in [0.01, 1.99] for `power`.

    q_positions [B|1, Tq], k_positions [B|1, Tk] → [B|1, H, Tq, Tk].

    Options: `kernel` is log or power.

    Raises:
        ValueError: `kernel` is neither.
    """

    def __init__(self, num_heads: int, kernel: Literal["log", "power"] = "log"):
        super().__init__()
        one_of(MAX_INITIAL, kernel=kernel)
        self.kernel = kernel
        self.raw1, self.raw2 = (self._vector(num_heads, most) for most in MAX_INITIAL[kernel])
        with paddle.no_grad():
            self.raw1.set_value(paddle.log(paddle.expm1(self.raw1)))
            self.raw2.set_value(
                paddle.log(paddle.expm1(self.raw2) if kernel == "log" else self.raw2 / (2.0 - self.raw2))
            )

    def _vector(self, num_heads: int, most: float) -> Tensor:
        """[H] uniform in [MIN_INITIAL, most]; from Paddle's generator, which the engine seeds by the component's
        site."""
        return self.create_parameter([num_heads], default_initializer=nn.initializer.Uniform(MIN_INITIAL, most))

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        distance = (k_positions.unsqueeze(1) - q_positions.unsqueeze(2)).abs().unsqueeze(1)  # [B|1, 1, Tq, Tk]
        distance = distance.astype(self.raw1.dtype)
        r1 = F.softplus(self.raw1).reshape([1, -1, 1, 1])
        r2 = self.raw2.reshape([1, -1, 1, 1])
        if self.kernel == "log":
            return -r1 * paddle.log1p(F.softplus(r2) * distance)
        power = paddle.exp(2.0 * F.sigmoid(r2) * paddle.log(distance.clip(min=1.0)))  # 0^r2 has no finite gradient
        return -r1 * power * (distance > 0).astype(power.dtype)
