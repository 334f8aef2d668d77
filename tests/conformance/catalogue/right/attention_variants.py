"""Right attentions that the zoo does not have, written from papers and public code with plain operations of Paddle."""

import math
from dataclasses import dataclass

import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, KeyValue, keep_initial


def heads(x, count):
    return x.reshape([x.shape[0], x.shape[1], count, -1]).transpose([0, 2, 1, 3])


def together(x):
    return x.transpose([0, 2, 1, 3]).reshape([x.shape[0], x.shape[2], -1])


class Textbook(Attention):
    """Vaswani et al. 2017 (arXiv:1706.03762), written with einsum."""

    supports = frozenset({"embed", "rotate", "bias"})

    def __init__(self, d_model, num_heads, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.o = (Linear(d_model, d_model) for _ in range(4))
        self.drop = Dropout(dropout)

    def project(self, source, info):
        k = info.encoding.key(heads(self.k(source), self.num_heads), info.positions)
        return KeyValue(k, heads(self.v(source), self.num_heads))

    def forward(self, x, kv, info, mask, tap):
        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)
        scores = paddle.einsum("bhqd,bhkd->bhqk", q, kv.key) / math.sqrt(q.shape[-1])
        weights = F.softmax(scores + mask.dense(scores.dtype), -1)
        weights = self.drop(weights)
        return self.o(together(paddle.einsum("bhqk,bhkd->bhqd", weights, kv.value)))


class OneKeyHead(Attention):
    """Multi-query attention (Shazeer 2019, arXiv:1911.02150): all heads share one head of keys and values."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__()
        self.num_heads, self.width = num_heads, d_model // num_heads
        self.q, self.o = Linear(d_model, d_model), Linear(d_model, d_model)
        self.kv = Linear(d_model, 2 * self.width)
        self.drop = Dropout(dropout)

    def project(self, source, info):
        k, v = paddle.split(self.kv(source).unsqueeze(1), 2, -1)
        return KeyValue(k, v)

    def forward(self, x, kv, info, mask, tap):
        q = heads(self.q(x), self.num_heads)
        scores = paddle.matmul(q, kv.key, transpose_y=True) * self.width**-0.5
        return self.o(together(paddle.matmul(self.drop(F.softmax(mask.add_to(scores), -1)), kv.value)))


class NormedQueriesAndKeys(Textbook):
    """RMS norm of each head's queries and keys with learned gains, as in OLMo 2 (arXiv:2501.00656) and Qwen 3."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads, dropout)
        ones = nn.initializer.Constant(1.0)
        self.q_gain = self.create_parameter([d_model // num_heads], default_initializer=ones)
        self.k_gain = self.create_parameter([d_model // num_heads], default_initializer=ones)

    @staticmethod
    def unit(x, gain):
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * gain

    def project(self, source, info):
        k = self.unit(heads(self.k(source), self.num_heads), self.k_gain)
        return KeyValue(info.encoding.key(k, info.positions), heads(self.v(source), self.num_heads))

    def forward(self, x, kv, info, mask, tap):
        q = self.unit(heads(self.q(x), self.num_heads), self.q_gain)
        q = info.encoding.query(q, info.positions) * q.shape[-1] ** -0.5
        normed_scores = paddle.matmul(q, kv.key, transpose_y=True)
        weights = self.drop(F.softmax(mask.add_to(normed_scores), -1))
        return self.o(together(paddle.matmul(weights, kv.value)))


NormedQueriesAndKeys.expected_failures = {"temperature": "scores do not grow with the queries: they are normalized"}


class Sinks(Textbook):
    """A learned logit a head takes part in the softmax and carries no value (gpt-oss; cf. arXiv:2309.17453)."""

    expected_failures = {"averages": "the sink takes a part of the weight"}

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads, dropout)
        self.sink = self.create_parameter([num_heads], default_initializer=nn.initializer.Constant(0.0))

    def forward(self, x, kv, info, mask, tap):
        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)
        scores = mask.add_to(paddle.matmul(q, kv.key, transpose_y=True) / math.sqrt(q.shape[-1]))
        sink = self.sink.reshape([1, -1, 1, 1]).expand([*scores.shape[:3], 1])
        weights = F.softmax(paddle.concat([scores, sink], -1), -1)[..., :-1]
        return self.o(together(paddle.matmul(self.drop(weights), kv.value)))


class OwnTemperature(Textbook):
    """A learned temperature a head, exp(t) (cf. Henry et al. 2020, arXiv:2010.04245)."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads, dropout)
        self.t = keep_initial(
            self.create_parameter([num_heads, 1, 1], default_initializer=nn.initializer.Constant(0.0))
        )

    def forward(self, x, kv, info, mask, tap):
        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions) * paddle.exp(self.t)
        logits = paddle.matmul(q, kv.key, transpose_y=True) / math.sqrt(q.shape[-1])
        return self.o(together(paddle.matmul(self.drop(F.softmax(mask.add_to(logits), -1)), kv.value)))


class NarrowWindow(Textbook):
    """A query sees keys at most two positions away; cross-attention sees all (cf. Longformer, arXiv:2004.05150)."""

    expected_failures = {"attends": "keys more than two positions away are hidden", "reach": "a window of two"}

    def __init__(self, d_model, num_heads, dropout, site):
        super().__init__(d_model, num_heads, dropout)
        self.near = site.sublayer == "self"

    def forward(self, x, kv, info, mask, tap):
        if self.near:
            mask = mask.restricted(("near", 2), lambda q, k: (q - k).abs() <= 2)
        return super().forward(x, kv, info, mask, tap)


class Dilated(Textbook):
    """Keys at even distances only, in self-attention (cf. Sparse Transformers, arXiv:1904.10509)."""

    expected_failures = {"attends": "keys at odd distances are hidden"}

    def __init__(self, d_model, num_heads, dropout, site):
        super().__init__(d_model, num_heads, dropout)
        self.sparse = site.sublayer == "self"

    def forward(self, x, kv, info, mask, tap):
        if self.sparse:
            mask = mask.restricted("even distances", lambda q, k: (q - k) % 2 == 0)
        return super().forward(x, kv, info, mask, tap)


class GatedOutput(Textbook):
    """Each head's output times sigmoid(x W) (Qiu et al. 2025, arXiv:2505.06708)."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads, dropout)
        self.gate = Linear(d_model, d_model)

    def forward(self, x, kv, info, mask, tap):
        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)
        gated = F.softmax(mask.add_to(paddle.matmul(q, kv.key, transpose_y=True) / math.sqrt(q.shape[-1])), -1)
        context = together(paddle.matmul(self.drop(gated), kv.value))
        return self.o(context * F.sigmoid(self.gate(x)))


GatedOutput.expected_failures = {"averages": "the output is an average times a gate"}


class DroppedValues(Textbook):
    """Dropout of a rate of its own on the values, after the cache, besides that on the weights."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads, dropout)
        self.drop_output = Dropout(0.2)

    def forward(self, x, kv, info, mask, tap):
        return self.drop_output(super().forward(x, kv, info, mask, tap))


class Latent(Attention):
    """Keys and values from a narrow latent, which is what the cache holds (DeepSeek-V2, arXiv:2405.04434, without its
    rotary part)."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.down, self.up = Linear(d_model, d_model // 2), Linear(d_model // 2, 2 * d_model)
        self.query, self.out = Linear(d_model, d_model), Linear(d_model, d_model)
        self.drop = Dropout(dropout)

    def project(self, source, info):
        latent = self.down(source).unsqueeze(1)
        return KeyValue(latent, latent[..., :0])

    def forward(self, x, kv, info, mask, tap):
        k, v = paddle.split(self.up(kv.key.squeeze(1)), 2, -1)
        k, v, q = heads(k, self.num_heads), heads(v, self.num_heads), heads(self.query(x), self.num_heads)
        logits = mask.add_to(paddle.matmul(q, k, transpose_y=True) / math.sqrt(q.shape[-1]))
        return self.out(together(paddle.matmul(self.drop(F.softmax(logits, -1)), v)))


@dataclass(frozen=True)
class _Forgotten(KeyValue):
    """With the sum of log forget gates up to each token, [B, H, S, 1]."""

    total: paddle.Tensor

    def extend(self, new):
        total = paddle.concat([self.total, self.total[:, :, -1:] + new.total], 2)
        both = super().extend(new)
        return _Forgotten(both.key, both.value, total)

    def replaced(self, key, value):
        return KeyValue(key, value)

    def select(self, rows):
        both = super().select(rows)
        return _Forgotten(both.key, both.value, self.total.index_select(rows, 0))


class Forgetting(Textbook):
    """Scores fall by the log forget gates between key and query (Lin et al. 2025, arXiv:2503.02130); elsewhere than in
    the decoder's self-attention it is plain."""

    def __init__(self, d_model, num_heads, dropout, site):
        super().__init__(d_model, num_heads, dropout)
        self.forget = Linear(d_model, num_heads) if site.causal else None

    def project(self, source, info):
        kv = super().project(source, info)
        if self.forget is None:
            return kv
        log_gate = F.log_sigmoid(self.forget(source)).transpose([0, 2, 1]).unsqueeze(-1)  # [B, H, S, 1]
        return _Forgotten(kv.key, kv.value, log_gate.cumsum(2))

    def forward(self, x, kv, info, mask, tap):
        if self.forget is None:
            return super().forward(x, kv, info, mask, tap)
        q = info.encoding.query(heads(self.q(x), self.num_heads), info.positions)
        now = kv.total[:, :, -x.shape[1] :]  # [B, H, T, 1]
        decay = now - kv.total.transpose([0, 1, 3, 2])  # [B, H, T, S]
        scores = paddle.matmul(q, kv.key, transpose_y=True) / math.sqrt(q.shape[-1]) + decay
        weights = self.drop(F.softmax(mask.add_to(scores), -1))
        return self.o(together(paddle.matmul(weights, kv.value)))
