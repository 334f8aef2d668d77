"""Sinusoidal positions: the twin of mutants of an added encoding."""

import math

import paddle

from paddle_tfm.protocols import PositionalEncoding


class Twin(PositionalEncoding):
    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model
        self.register_buffer(
            "rates", 10000.0 ** (-paddle.arange(0, d_model, 2).astype("float64") / d_model), persistable=False
        )

    def embed(self, x, positions):
        angle = positions.unsqueeze(-1).astype("float64") * self.rates
        added = paddle.stack([paddle.sin(angle), paddle.cos(angle)], -1).flatten(-2)
        return x + added.astype(x.dtype)


__all__ = ["math"]
