"""Multi-head attention as learners write it, a layer for each head: the twin of the classic mistakes."""

import math

import paddle
import paddle.nn.functional as F
from paddle import nn


class Head(nn.Layer):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.query = nn.Linear(d_model, d_k)
        self.key = nn.Linear(d_model, d_k)
        self.value = nn.Linear(d_model, d_k)
        self.d_k = d_k

    def forward(self, query, key, value, mask):
        q = self.query(query)
        k = self.key(key)
        v = self.value(value)
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(self.d_k)
        scores = paddle.where(mask, scores, paddle.full_like(scores, -1e9))
        return paddle.matmul(F.softmax(scores, -1), v)


class Twin(nn.Layer):
    def __init__(self, d_model, num_heads):
        super().__init__()
        heads = [Head(d_model, d_model // num_heads) for _ in range(num_heads)]
        self.heads = nn.LayerList(heads)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask):
        found = []
        for head in self.heads:
            found.append(head(query, key, value, mask))
        return self.output(paddle.concat(found, -1))
