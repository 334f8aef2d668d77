"""Right layers that laws written for smooth, dense and well-known ones may call wrong: weights that are sharp or sparse,
experts without a token, positions that return by design, numbers as options."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, FeedForward, Head, KeyValue, Metric, Norm, PositionalEncoding, keep_initial
from paddle_tfm.validators import at_least, positive


def heads(x, count):
    return x.reshape([x.shape[0], x.shape[1], count, -1]).transpose([0, 2, 1, 3])


class _Softmax(Attention):
    """What the attentions below share: `weights` of scores and a mask that is added to them."""

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
        scores = paddle.matmul(q, kv.key, transpose_y=True) / math.sqrt(q.shape[-1])
        context = paddle.matmul(self.drop(self.weights(scores, mask)), kv.value)
        return self.o(context.transpose([0, 2, 1, 3]).reshape(x.shape))

    def weights(self, scores, mask):
        return F.softmax(scores + mask.dense(scores.dtype), -1)


class CapOfScores(_Softmax):
    """Scores through cap · tanh(score / cap) (Gemma 2, arXiv:2408.00118), the cap an option."""

    def __init__(self, d_model, num_heads, dropout, cap: float = 50.0):
        super().__init__(d_model, num_heads, dropout)
        positive(cap=cap)
        self.cap = cap

    def weights(self, scores, mask):
        capped = self.cap * paddle.tanh(scores / self.cap) + mask.dense(scores.dtype)
        return F.softmax(capped, -1)


class WindowOfKeys(_Softmax):
    """In the decoder a query sees its own and the `window` − 1 keys before (Mistral, arXiv:2310.06825)."""

    def __init__(self, d_model, num_heads, dropout, site, window: int = 256):
        super().__init__(d_model, num_heads, dropout)
        at_least(1, window=window)
        self.window, self.here = window, site.causal

    def weights(self, scores, mask):
        near = mask.restricted(("near", self.window), lambda q, k: (q - k).abs() < self.window) if self.here else mask
        return super().weights(scores, near)


class BestKeys(_Softmax):
    """The `keep` highest scores of those that may be seen (Gupta 2021, arXiv:2106.06899)."""

    expected_failures = {"reaches": "some keys are left out"}

    def __init__(self, d_model, num_heads, dropout, keep: int = 128):
        super().__init__(d_model, num_heads, dropout)
        at_least(1, keep=keep)
        self.keep = keep

    def weights(self, scores, mask):
        scores = scores + mask.dense(scores.dtype)
        least = scores.topk(min(self.keep, scores.shape[-1]), -1)[0][..., -1:]
        return F.softmax(paddle.where(scores < least, scores - 1e9, scores), -1)


class Sparsemax(_Softmax):
    """The nearest point of the simplex (Martins 2016, arXiv:1602.02068)."""

    expected_failures = {"temperature": "weights are sparse by design"}

    def weights(self, scores, mask):
        scores = scores + mask.dense(scores.dtype)
        scores = scores - scores.max(-1, keepdim=True)  # where all are masked, all are alike
        ordered = paddle.sort(scores, -1, descending=True)
        rank = paddle.arange(1, scores.shape[-1] + 1).astype(scores.dtype)
        total = ordered.cumsum(-1) - 1.0
        count = (rank * ordered > total).astype(scores.dtype).sum(-1, keepdim=True)
        index = (count - 1.0).astype("int64")
        return F.relu(scores - paddle.take_along_axis(total, index, -1) / count)


class Sharp(_Softmax):
    """Scores four times as large: nearly the highest alone, as it says."""

    expected_failures = {"temperature": "sharp by design"}

    def weights(self, scores, mask):
        return super().weights(4.0 * scores, mask)


class SharperInLongTexts(_Softmax):
    """Scores times s log n, n the number of keys that are seen, s trained a head from 0.43 (Nakanishi 2025,
    arXiv:2501.19399)."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads, dropout)
        start = nn.initializer.Constant(0.43)
        self.s = keep_initial(self.create_parameter([num_heads, 1, 1], default_initializer=start))

    def weights(self, scores, mask):
        seen = mask.allowed().astype(scores.dtype).sum(-1, keepdim=True).clip(min=1.0)
        return super().weights(scores * self.s * paddle.log(seen + 1.0), mask)


class TwoOfEight(FeedForward):
    """Two of eight experts, chosen tokens gathered, their shares a softmax of both (Mixtral, arXiv:2401.04088)."""

    expected_failures = {"trains *experts*": "an expert may have no token in a few small batches"}

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.router, self.d_model = Linear(d_model, 8), d_model
        self.experts = nn.LayerList([nn.LayerList([Linear(d_model, d_ff), Linear(d_ff, d_model)]) for _ in range(8)])

    def forward(self, x, info, tap):
        tokens = x.reshape([-1, self.d_model])
        highest, chosen = self.router(tokens).topk(2, -1)
        shares, out = F.softmax(highest, -1), paddle.zeros_like(tokens)
        for i, (inner, outer) in enumerate(self.experts):
            share = (shares * (chosen == i).astype(shares.dtype)).sum(-1)
            rows = paddle.nonzero((chosen == i).any(-1)).flatten()
            if rows.shape[0] == 0:
                continue
            some = outer(F.gelu(inner(tokens.index_select(rows)))) * share.index_select(rows).unsqueeze(-1)
            out = paddle.scatter_nd_add(out, rows.unsqueeze(-1), some)
        return out.reshape(x.shape)


class Chunks(FeedForward):
    """The tokens of a batch computed `chunk` at a time, which takes less memory (Reformer, arXiv:2001.04451)."""

    def __init__(self, d_model, d_ff, chunk: int = 4096):
        super().__init__()
        at_least(1, chunk=chunk)
        self.inner, self.outer, self.chunk = Linear(d_model, d_ff), Linear(d_ff, d_model), chunk

    def forward(self, x, info, tap):
        tokens = x.reshape([-1, x.shape[-1]])
        parts = [tokens[i : i + self.chunk] for i in range(0, tokens.shape[0], self.chunk)]
        parts = [self.outer(F.relu(self.inner(part))) for part in parts]
        return paddle.concat(parts).reshape(x.shape)


class SiluFunction(FeedForward):
    """F.silu between two matrices."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.outer = Linear(d_model, d_ff), Linear(d_ff, d_model)

    def forward(self, x, info, tap):
        return self.outer(F.silu(self.inner(x)))


class SiluGate(FeedForward):
    """SwiGLU with the layer nn.Silu (arXiv:2002.05202)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate, self.inner, self.outer = Linear(d_model, d_ff), Linear(d_model, d_ff), Linear(d_ff, d_model)
        self.act = nn.Silu()

    def forward(self, x, info, tap):
        return self.outer(self.act(self.gate(x)) * self.inner(x))


class SwishFunction(SiluFunction):
    """F.swish between two matrices."""

    def forward(self, x, info, tap):
        return self.outer(F.swish(self.inner(x)))


class MeanDeviation(Norm):
    """x − mean over the mean absolute deviation."""

    invariances = frozenset({"scale", "shift"})

    def __init__(self, d_model, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x, valid=None, positions=None):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.abs().mean(-1, keepdim=True) + self.eps) * self.weight


class ClippedRMS(Norm):
    """RMS norm of numbers that are clipped to ±`most`, as against spikes."""

    def __init__(self, d_model, most: float = 100.0):
        super().__init__()
        positive(most=most)
        self.most = most
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x, valid=None, positions=None):
        x = x.clip(-self.most, self.most)
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight


class WordsHeld(Head):
    """The target embedding's table as the output matrix, held as a layer: Paddle saves its table twice."""

    expected_failures = {"registered": "`self.embedding` saves the table a second time"}

    def __init__(self, embedding, pad_id: int):
        super().__init__()
        self.embedding, self.pad_id = embedding, pad_id

    def logits(self, h):
        return paddle.matmul(h, self.embedding.weight, transpose_y=True)

    def log_probs(self, h, memory):
        return F.log_softmax(self.logits(h), -1)

    def loss(self, h, target, memory, smoothing=0.0):
        log_probs = self.log_probs(h, memory)
        picked = log_probs.take_along_axis(target.unsqueeze(-1), -1).squeeze(-1)
        mean = (log_probs.sum(-1) - log_probs[..., self.pad_id]) / (log_probs.shape[-1] - 1)
        return -(1 - smoothing) * picked - smoothing * mean


class WordsHeldAndBias(WordsHeld):
    """The same with a bias for each word."""

    def __init__(self, embedding, vocab_size: int, pad_id: int):
        super().__init__(embedding, pad_id)
        self.bias = self.create_parameter([vocab_size], is_bias=True)

    def logits(self, h):
        return super().logits(h) + self.bias


class Lines(PositionalEncoding):
    """Text in lines of 80: sinusoids of the column and of the line, half of the channels each, as for images."""

    def __init__(self, d_model: int, width: int = 80):
        super().__init__()
        self.width = width
        rates = 10000.0 ** (-np.arange(d_model // 4) / (d_model // 4))
        self.register_buffer("rates", paddle.to_tensor(rates.astype("float32")), persistable=False)

    def embed(self, x, positions):
        column, line = positions % self.width, positions // self.width
        angles = [each.unsqueeze(-1).astype("float32") * self.rates for each in (column, line)]
        return x + paddle.concat([f(angle) for angle in angles for f in (paddle.sin, paddle.cos)], -1)


class Triangles(PositionalEncoding):
    """Triangle waves of the periods 7, 32, 100, … in the place of sinusoids."""

    def __init__(self, d_model: int):
        super().__init__()
        periods = 8.0 * 4.0 ** np.arange(d_model // 2)[:8]
        periods = np.concatenate([periods, np.full(d_model // 2 - len(periods), 11.0)])
        self.register_buffer("periods", paddle.to_tensor(periods.astype("float32")), persistable=False)

    def embed(self, x, positions):
        phase = positions.unsqueeze(-1).astype("float32") / self.periods
        waves = [4.0 * (each - (each + 0.5).floor()).abs() - 1.0 for each in (phase, phase + 0.25)]
        return x + paddle.concat(waves, -1)


class Hours(PositionalEncoding):
    """One token an hour: sines and cosines of the hour of the day and of the day in 16 weeks, harmonics of each."""

    expected_failures = {"beyond_length": "time returns after 16 weeks", "far_positions": "time returns after 16 weeks"}

    def __init__(self, d_model: int):
        super().__init__()
        periods = [24, 168, 2688, 12, 84, 1344, 8, 56]
        turns = np.array([2 * math.pi / periods[i % 8] for i in range(d_model // 2)])
        self.register_buffer("turns", paddle.to_tensor(turns), persistable=False)

    def embed(self, x, positions):
        angle = positions.unsqueeze(-1).astype("float64") * self.turns
        return x + paddle.concat([paddle.sin(angle), paddle.cos(angle)], -1).astype(x.dtype)


class Circle(PositionalEncoding):
    """Positions on a circle of 512: sines and cosines of whole numbers of turns."""

    def __init__(self, d_model: int, period: int = 512):
        super().__init__()
        turns = 2 * math.pi / period * 2.0 ** (np.arange(d_model // 2) % 8)
        self.register_buffer("turns", paddle.to_tensor(turns), persistable=False)

    def embed(self, x, positions):
        angle = positions.unsqueeze(-1).astype("float64") * self.turns
        return x + paddle.concat([paddle.sin(angle), paddle.cos(angle)], -1).astype(x.dtype)


class SameNumber(Metric):
    """The share of outputs that are the reference's whole number, however it is written: for a task of sums."""

    higher_is_better = True

    @staticmethod
    def number(text):
        digits = text.replace(" ", "").lstrip("0") or "0"
        return int(digits) if digits.isdigit() else None

    def statistics(self, predictions):
        pairs = [(self.number(p.hypothesis), self.number(p.reference)) for p in predictions]
        return np.array([[float(a is not None and a == b), 1.0] for a, b in pairs])

    def value(self, total):
        return float(total[0] / total[1])


class SameDate(Metric):
    """The share of outputs that name the reference's day, 2024-05-01, for a task of dates."""

    higher_is_better = True

    def statistics(self, predictions):
        def day(text):
            parts = text.replace(" ", "").split("-")
            return tuple(map(int, parts)) if len(parts) == 3 and all(part.isdigit() for part in parts) else None

        return np.array([[float(day(p.reference) is not None and day(p.hypothesis) == day(p.reference)), 1.0]
                         for p in predictions])  # fmt: skip

    def value(self, total):
        return float(total[0] / total[1])
