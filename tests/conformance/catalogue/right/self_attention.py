"""Self-attention as models of 2023 and later have it: one matrix for queries, keys and values, and a dropout of its own."""

import paddle
import paddle.nn.functional as F
from paddle import nn


class Twin(nn.Layer):
    def __init__(self, n_embd, n_head, dropout=0.1):
        super().__init__()
        self.n_head, self.rate = n_head, dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = paddle.chunk(self.c_attn(x), 3, -1)
        q = q.reshape([b, t, self.n_head, c // self.n_head]).transpose([0, 2, 1, 3])
        k = k.reshape([b, t, self.n_head, c // self.n_head]).transpose([0, 2, 1, 3])
        v = v.reshape([b, t, self.n_head, c // self.n_head]).transpose([0, 2, 1, 3])
        scores = paddle.matmul(q, k, transpose_y=True) * (c // self.n_head) ** -0.5
        weights = F.softmax(scores + mask, -1)
        weights = F.dropout(weights, self.rate, training=self.training)
        y = paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([b, t, c])
        return self.c_proj(y)
