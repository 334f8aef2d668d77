"""A whole Transformer as learners write it, without paddle_tfm: the twin of the classic mistakes."""

import math

import paddle
import paddle.nn.functional as F
from paddle import nn


class MultiHead(nn.Layer):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h, self.d_k = num_heads, d_model // num_heads
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.output = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def heads(self, x):
        return x.reshape([x.shape[0], x.shape[1], self.h, self.d_k]).transpose([0, 2, 1, 3])

    def forward(self, x, memory, mask):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(memory)), self.heads(self.value(memory))
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(self.d_k)
        scores = paddle.where(mask.expand(scores.shape), scores, paddle.full_like(scores, -1e9))
        context = paddle.matmul(F.softmax(scores, -1), v)
        return self.output(context.transpose([0, 2, 1, 3]).reshape(x.shape))


class Layer(nn.Layer):
    def __init__(self, d_model, num_heads, d_ff, dropout, decoder):
        super().__init__()
        self.look = MultiHead(d_model, num_heads)
        self.across = MultiHead(d_model, num_heads) if decoder else None
        self.think = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.LayerList([nn.LayerNorm(d_model) for _ in range(3 if decoder else 2)])
        self.rate = dropout

    def add(self, x, branch, norm):
        return norm(x + F.dropout(branch, self.rate, training=self.training))

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.add(x, self.look(x, x, mask), self.norms[0])
        if self.across is not None:
            x = self.add(x, self.across(x, memory, memory_mask), self.norms[1])
        return self.add(x, self.think(x), self.norms[-1])


class Twin(nn.Layer):
    def __init__(self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, d_ff, dropout=0.1, pad_idx=0):
        super().__init__()
        self.d_model, self.pad_idx = d_model, pad_idx
        normal = nn.initializer.Normal(0.0, d_model**-0.5)
        self.source = nn.Embedding(src_vocab_size, d_model, weight_attr=normal)
        self.target = nn.Embedding(tgt_vocab_size, d_model, weight_attr=normal)
        encoder = [Layer(d_model, num_heads, d_ff, dropout, False) for _ in range(num_layers)]
        decoder = [Layer(d_model, num_heads, d_ff, dropout, True) for _ in range(num_layers)]
        self.encoder, self.decoder = nn.LayerList(encoder), nn.LayerList(decoder)
        self.output = nn.Linear(d_model, tgt_vocab_size, weight_attr=normal)

    def positions(self, length):
        position = paddle.arange(length).astype("float32").unsqueeze(1)
        angle = position * 10000.0 ** (-paddle.arange(0, self.d_model, 2).astype("float32") / self.d_model)
        return paddle.stack([paddle.sin(angle), paddle.cos(angle)], -1).flatten(-2)

    def embed(self, ids, table):
        x = table(ids) * math.sqrt(self.d_model)
        return x + self.positions(ids.shape[1])

    def forward(self, src, tgt):
        real = (src != self.pad_idx).unsqueeze([1, 2])
        past = paddle.tril(paddle.ones([tgt.shape[1], tgt.shape[1]])).astype("bool")
        past = past.unsqueeze([0, 1]) & (tgt != self.pad_idx).unsqueeze([1, 2])
        x = self.embed(src, self.source)
        for layer in self.encoder:
            x = layer(x, real)
        y = self.embed(tgt, self.target)
        for layer in self.decoder:
            y = layer(y, past, x, real)
        return self.output(y)
