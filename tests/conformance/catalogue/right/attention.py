"""Multi-head attention against the protocol, written out in one class: the twin of the mutants of attention."""

import math

import paddle
import paddle.nn.functional as F

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, KeyValue


class Past(KeyValue):
    def extend(self, new):
        return Past(paddle.concat([self.key, new.key], 2), paddle.concat([self.value, new.value], 2))

    def select(self, rows):
        return Past(self.key.index_select(rows, 0), self.value.index_select(rows, 0))


class Twin(Attention):
    supports = frozenset({"embed", "rotate", "bias", "scores", "values"})

    def __init__(self, d_model: int, num_heads: int, dropout: float):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"`num_heads` must divide `d_model`, but {num_heads} does not divide {d_model}")
        self.d_model, self.heads, self.head_dim = d_model, num_heads, d_model // num_heads
        self.query = Linear(d_model, d_model)
        self.key = Linear(d_model, d_model)
        self.value = Linear(d_model, d_model)
        self.output = Linear(d_model, d_model)
        self.dropout = Dropout(dropout)

    def split(self, x):
        return x.reshape([x.shape[0], x.shape[1], self.heads, self.head_dim]).transpose([0, 2, 1, 3])

    def merge(self, x):
        return x.transpose([0, 2, 1, 3]).reshape([x.shape[0], x.shape[2], self.d_model])

    def project(self, source, info):
        key = info.encoding.key(self.split(self.key(source)), info.positions)
        value = self.split(self.value(source))
        return Past(key, value)

    def forward(self, x, kv, info, mask, tap):
        q = info.encoding.query(self.split(self.query(x)), info.positions)
        scores = paddle.matmul(q, kv.key, transpose_y=True)
        relative = info.encoding.scores(q, kv.key, info.positions, mask.k_positions)
        scores = scores if relative is None else scores + relative
        scores = scores / math.sqrt(self.head_dim)
        weights = F.softmax(scores + mask.dense(scores.dtype), -1)
        weights = self.dropout(weights)
        context = paddle.matmul(weights, kv.value)
        relative = info.encoding.values(weights, info.positions, mask.k_positions)
        context = context if relative is None else context + relative
        return self.output(self.merge(context))

    def branch_weights(self):
        return [self.value.weight, self.output.weight]
