"""Rotary positions: the twin of mutants of a rotation."""

import paddle

from paddle_tfm.protocols import PositionalEncoding


class Twin(PositionalEncoding):
    def __init__(self, head_dim: int):
        super().__init__()
        rates = 10000.0 ** (-paddle.arange(0, head_dim, 2).astype("float64") / head_dim)
        self.register_buffer("rates", rates, persistable=False)

    def turn(self, x, positions):
        angle = (positions.unsqueeze(-1).astype("float64") * self.rates).unsqueeze(1)
        cos, sin = paddle.cos(angle).astype(x.dtype), paddle.sin(angle).astype(x.dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        return paddle.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    def query(self, q, positions):
        return self.turn(q, positions)

    def key(self, k, positions):
        return self.turn(k, positions)
