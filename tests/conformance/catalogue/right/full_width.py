"""Attention whose heads are each as wide as the model, as learners write it: the twin of a mutant of its scale."""

import math

import paddle
import paddle.nn.functional as F
from paddle import nn


class Twin(nn.Layer):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        self.query = nn.Linear(d_model, d_model * num_heads)
        self.key = nn.Linear(d_model, d_model * num_heads)
        self.value = nn.Linear(d_model, d_model * num_heads)
        self.output = nn.Linear(d_model * num_heads, d_model)

    def heads(self, x):
        return x.reshape([x.shape[0], x.shape[1], self.num_heads, self.d_model]).transpose([0, 2, 1, 3])

    def forward(self, query, key, value, mask=None):
        q, k, v = self.heads(self.query(query)), self.heads(self.key(key)), self.heads(self.value(value))
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(self.d_model)
        scores = paddle.where(mask, scores, paddle.full_like(scores, -1e9))
        context = paddle.matmul(F.softmax(scores, -1), v).transpose([0, 2, 1, 3])
        return self.output(context.reshape([query.shape[0], query.shape[1], -1]))
