"""Sinusoidal positions as learners write them: a table, and x + table."""

import paddle
from paddle import nn


class Twin(nn.Layer):
    def __init__(self, d_model, max_len=200):
        super().__init__()
        position = paddle.arange(max_len).astype("float32").unsqueeze(1)
        rates = 10000.0 ** (-paddle.arange(0, d_model, 2).astype("float32") / d_model)
        table = paddle.zeros([max_len, d_model])
        table[:, 0::2] = paddle.sin(position * rates)
        table[:, 1::2] = paddle.cos(position * rates)
        self.register_buffer("table", table)

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"{x.shape[1]} tokens, but the table has {self.table.shape[0]} positions")
        return x + self.table[: x.shape[1]].astype(x.dtype)
