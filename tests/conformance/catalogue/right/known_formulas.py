"""Formulas that the zoo has, written by others: under other names, or in another order of channels."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, FeedForward, KeyValue, Norm, PositionalEncoding


class RootMeanSquare(Norm):
    """x / sqrt(mean(x²) + ε) g, as LLaMA has it."""

    invariances = frozenset({"scale"})

    def __init__(self, d_model, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.scale = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x, valid=None, positions=None):
        size = paddle.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x / size * self.scale


class GatedNetwork(FeedForward):
    """down(silu(gate x) · up x)."""

    def __init__(self, d_model, d_ff, dropout):
        super().__init__()
        self.gate_proj, self.up_proj = Linear(d_model, d_ff, False), Linear(d_model, d_ff, False)
        self.down_proj, self.drop = Linear(d_ff, d_model, False), Dropout(dropout)

    def forward(self, x, info, tap):
        gate, up = self.gate_proj(x), self.up_proj(x)
        return self.down_proj(self.drop(gate * F.sigmoid(gate) * up))


class Gaussian(FeedForward):
    """fc2(gelu(fc1 x)), with the tanh of GPT-2."""

    def __init__(self, d_model, d_ff, dropout):
        super().__init__()
        self.fc1, self.fc2, self.drop = Linear(d_model, d_ff), Linear(d_ff, d_model), Dropout(dropout)

    def forward(self, x, info, tap):
        y = self.fc1(x)
        y = 0.5 * y * (1.0 + paddle.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * y**3)))
        return self.fc2(self.drop(y))


class Buckets(PositionalEncoding):
    """T5's relative positions, as its PyTorch code counts buckets."""

    def __init__(self, num_heads, site, buckets: int = 32, max_distance: int = 128):
        super().__init__()
        self.buckets, self.max_distance, self.causal = buckets, max_distance, site.causal
        normal = nn.initializer.Normal(0.0, 0.5)
        self.relative_attention_bias = self.create_parameter([buckets, num_heads], default_initializer=normal)

    def bucket(self, ahead):
        first, count = paddle.zeros_like(ahead), self.buckets
        if not self.causal:
            count = count // 2
            first = (ahead > 0).astype("int64") * count
            ahead = ahead.abs()
        else:
            ahead = (-ahead).clip(min=0)
        exact = count // 2
        ratio = paddle.log(ahead.clip(min=1).astype("float64") / exact) / math.log(self.max_distance / exact)
        large = exact + (ratio * (count - exact) + 1e-9).floor().astype("int64")
        return first + paddle.where(ahead < exact, ahead, large.clip(max=count - 1))

    def bias(self, q_positions, k_positions):
        index = self.bucket(k_positions.unsqueeze(1) - q_positions.unsqueeze(2))
        return F.embedding(index, self.relative_attention_bias).transpose([0, 3, 1, 2])


class Turned(PositionalEncoding):
    """Rotary positions (arXiv:2104.09864) of channels i and i + D / 2, as Llama has them."""

    def __init__(self, head_dim, theta: float = 10000.0):
        super().__init__()
        rates = theta ** (-np.arange(0, head_dim, 2) / head_dim)
        self.register_buffer("inv_freq", paddle.to_tensor(rates), persistable=False)

    def turn(self, x, positions):
        angle = positions.unsqueeze([1, -1]).astype("float64") * self.inv_freq
        angle = paddle.concat([angle, angle], -1)
        one, two = paddle.split(x, 2, -1)
        return x * paddle.cos(angle).astype(x.dtype) + paddle.concat([-two, one], -1) * paddle.sin(angle).astype(
            x.dtype
        )

    def query(self, q, positions):
        return self.turn(q, positions)

    def key(self, k, positions):
        return self.turn(k, positions)


class QuarterRotary(Turned):
    """A quarter of the channels turned, the others left (GPT-NeoX, arXiv:2204.06745)."""

    def __init__(self, head_dim):
        super().__init__(max(2, head_dim // 4 // 2 * 2))
        self.part = max(2, head_dim // 4 // 2 * 2)

    def turn(self, x, positions):
        return paddle.concat([super().turn(x[..., : self.part], positions), x[..., self.part :]], -1)


class Grouped(Attention):
    """Query heads that share keys and values in groups of neighbours (arXiv:2305.13245)."""

    supports = frozenset({"embed", "rotate", "bias"})

    def __init__(self, d_model, num_heads, dropout, kv_heads: int = 2):
        super().__init__()
        if d_model % num_heads or num_heads % kv_heads:
            raise ValueError(f"`kv_heads` must divide `num_heads`, but {kv_heads} does not divide {num_heads}")
        self.heads, self.groups, width = num_heads, kv_heads, d_model // num_heads * kv_heads
        self.wq, self.wk, self.wv = Linear(d_model, d_model), Linear(d_model, width), Linear(d_model, width)
        self.wo, self.drop = Linear(d_model, d_model), Dropout(dropout)

    def split(self, x, count):
        return x.reshape([x.shape[0], x.shape[1], count, -1]).transpose([0, 2, 1, 3])

    def project(self, source, info):
        key = info.encoding.key(self.split(self.wk(source), self.groups), info.positions)
        return KeyValue(key, self.split(self.wv(source), self.groups))

    def forward(self, x, kv, info, mask, tap):
        q = info.encoding.query(self.split(self.wq(x), self.heads), info.positions)
        key = kv.key.repeat_interleave(self.heads // self.groups, 1)
        value = kv.value.repeat_interleave(self.heads // self.groups, 1)
        scores = paddle.matmul(q, key, transpose_y=True) / math.sqrt(q.shape[-1])
        y = paddle.matmul(self.drop(F.softmax(mask.add_to(scores), -1)), value)
        return self.wo(y.transpose([0, 2, 1, 3]).flatten(2))


class CosineScores(Attention):
    """softmax(g q̂ k̂ᵀ) v with a trained g (arXiv:2010.04245)."""

    expected_failures = {"temperature": "queries and keys are of length 1"}

    def __init__(self, d_model, num_heads, dropout):
        super().__init__()
        self.heads = num_heads
        if d_model % num_heads:
            raise ValueError(f"`num_heads` must divide `d_model`, but {num_heads} does not divide {d_model}")
        self.to_q, self.to_k, self.to_v, self.to_out = (Linear(d_model, d_model) for _ in range(4))
        self.g = self.create_parameter([1], default_initializer=nn.initializer.Constant(8.0))
        self.drop = Dropout(dropout)

    def split(self, x):
        return x.reshape([x.shape[0], x.shape[1], self.heads, -1]).transpose([0, 2, 1, 3])

    def project(self, source, info):
        return KeyValue(F.normalize(self.split(self.to_k(source)), axis=-1), self.split(self.to_v(source)))

    def forward(self, x, kv, info, mask, tap):
        q = F.normalize(self.split(self.to_q(x)), axis=-1)
        scores = paddle.matmul(q, kv.key, transpose_y=True) * self.g
        y = paddle.matmul(self.drop(F.softmax(mask.add_to(scores), -1)), kv.value)
        return self.to_out(y.transpose([0, 2, 1, 3]).flatten(2))
