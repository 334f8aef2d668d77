"""Right feed-forwards, heads, initializers, optimizers, schedules and metrics that the zoo does not have, or has in
another form."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import FeedForward, Head, Initializer, Metric, Optimizer, Schedule
from paddle_tfm.validators import positive


class Mish(FeedForward):
    """W2 (u tanh(softplus(u))), u = x W1 (Misra 2019, arXiv:1908.08681), dropout on the hidden layer."""

    def __init__(self, d_model, d_ff, dropout):
        super().__init__()
        self.inner, self.outer, self.drop = Linear(d_model, d_ff), Linear(d_ff, d_model), Dropout(dropout)

    def forward(self, x, info, tap):
        u = self.inner(x)
        return self.outer(self.drop(u * paddle.tanh(F.softplus(u))))


class Bottleneck(FeedForward):
    """Low rank: the output matrix is a product of two (d_ff × C/2, C/2 × C), with dropout of a rate of its own."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.wide, self.narrow = Linear(d_model, d_ff), Linear(d_ff, d_model // 2, False)
        self.back, self.own_drop = Linear(d_model // 2, d_model), Dropout(0.1)

    def forward(self, x, info, tap):
        return self.back(self.narrow(self.own_drop(F.relu(self.wide(x)))))


class Maxout(FeedForward):
    """The larger of two projections (Goodfellow 2013, arXiv:1302.4389)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.a, self.b, self.out = Linear(d_model, d_ff), Linear(d_model, d_ff), Linear(d_ff, d_model)

    def forward(self, x, info, tap):
        return self.out(paddle.maximum(self.a(x), self.b(x)))


class SoftExperts(FeedForward):
    """Three small networks, mixed by a softmax of the token itself (a dense mixture of experts)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.router = Linear(d_model, 3)
        self.first, self.second = Linear(d_model, 3 * (d_ff // 2)), Linear(3 * (d_ff // 2), d_model)

    def forward(self, x, info, tap):
        share = F.softmax(self.router(x), -1)  # [B, T, 3]
        hidden = F.relu(self.first(x)).reshape([*x.shape[:2], 3, -1]) * share.unsqueeze(-1)
        return self.second(hidden.reshape([*x.shape[:2], -1]))


class NarrowExperts(FeedForward):
    """Four networks of a few ReLU units each, added up: a dozen tokens may leave half of the units of one shut."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.first = nn.LayerList([Linear(d_model, d_ff // 6) for _ in range(4)])
        self.second = nn.LayerList([Linear(d_ff // 6, d_model) for _ in range(4)])

    def forward(self, x, info, tap):
        return sum(second(F.relu(first(x) - 0.8)) for first, second in zip(self.first, self.second))


class LowRankHead(Head):
    """Logits through a matrix of rank C / 2."""

    def __init__(self, d_model, vocab_size, pad_id):
        super().__init__()
        self.down, self.up = Linear(d_model, d_model // 2), Linear(d_model // 2, vocab_size)
        self.words, self.pad_id = vocab_size, pad_id

    def log_probs(self, h, memory):
        return F.log_softmax(self.up(paddle.tanh(self.down(h))), -1)

    def loss(self, h, target, memory, smoothing=0.0):
        log_probs = self.log_probs(h, memory)
        picked = log_probs.take_along_axis(target.unsqueeze(-1), -1).squeeze(-1)
        others = (log_probs.sum(-1) - log_probs[..., self.pad_id]) / (self.words - 1)
        return -(1 - smoothing) * picked - smoothing * others


class TwoSoftmaxes(LowRankHead):
    """A mixture of two softmaxes (Yang et al. 2018, arXiv:1711.03953)."""

    def __init__(self, d_model, vocab_size, pad_id):
        super().__init__(d_model, vocab_size, pad_id)
        self.share, self.other = Linear(d_model, 1), Linear(d_model, vocab_size)

    def log_probs(self, h, memory):
        left, right = F.log_softmax(self.up(paddle.tanh(self.down(h))), -1), F.log_softmax(self.other(h), -1)
        weight = self.share(h)
        both = paddle.stack([F.log_sigmoid(weight) + left, F.log_sigmoid(-weight) + right], -1)
        return paddle.logsumexp(both, -1)


class CappedHead(LowRankHead):
    """Logits through 30 tanh(z / 30) (Gemma 2, arXiv:2408.00118)."""

    def log_probs(self, h, memory):
        return F.log_softmax(30.0 * paddle.tanh(self.up(self.down(h)) / 30.0), -1)


class Truncated(Initializer):
    """A normal distribution of deviation 1/sqrt(fan_in), cut at two deviations."""

    def draw(self, rng, shape, role):
        deviation = shape[-1 if role == "embedding" else -2] ** -0.5
        values = rng.standard_normal(shape)
        while (np.abs(values) > 2).any():
            values = np.where(np.abs(values) > 2, rng.standard_normal(shape), values)
        return (values * deviation).astype("float32")


class Orthogonal(Initializer):
    """Rows or columns are orthonormal (Saxe et al. 2014, arXiv:1312.6120); tables are normal."""

    def draw(self, rng, shape, role):
        if role == "embedding":
            return (rng.standard_normal(shape) * shape[-1] ** -0.5).astype("float32")
        rows, columns = shape[-2:]
        q, r = np.linalg.qr(rng.standard_normal([max(rows, columns), min(rows, columns)]))
        q = q * np.sign(np.diagonal(r))
        q = q if rows >= columns else q.T
        return np.broadcast_to(q, shape).astype("float32").copy()


class PlainDescent(Optimizer):
    """w ← w − rate · gradient."""

    expected_failures = {
        "inertia": "it has no state",
        "momentum": "it has no state",
    }

    def create(self, parameters):
        return paddle.optimizer.SGD(0.0, parameters=list(parameters))


class HeavyBall(Optimizer):
    """Momentum of Polyak."""

    def __init__(self, momentum: float = 0.9):
        self.momentum = momentum

    def create(self, parameters):
        return paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters))


class Trapezoid(Schedule):
    """Up over a tenth, flat, down to a hundredth of the peak over the last fifth (cf. arXiv:2405.18392)."""

    def __init__(self, steps, peak: float = 1e-3):
        positive(peak=peak)
        self.peak, self.steps = peak, steps

    def __call__(self, step):
        up = step / max(1.0, 0.1 * self.steps)
        down = max(0.01, (self.steps - step) / max(1.0, 0.2 * self.steps))
        return self.peak * min(1.0, up, down)


class WordF1(Metric):
    """F1 of the bags of words, summed over the corpus."""

    unit = "%"

    def statistics(self, predictions):
        rows = []
        for p in predictions:
            ours, theirs = p.hypothesis.split(), p.reference.split()
            both = sum(min(ours.count(word), theirs.count(word)) for word in set(ours))
            rows.append((both, len(ours), len(theirs)))
        return np.array(rows, float)

    def value(self, total):
        positive(words=total[2])
        return 2 * total[0] / (total[1] + total[2])


class PrefixRate(Metric):
    """The share of the reference's words that are right from the start on; what the output adds counts against it."""

    unit = "%"

    def statistics(self, predictions):
        rows = []
        for p in predictions:
            ours, theirs = p.hypothesis.split(), p.reference.split()
            right = 0
            while right < min(len(ours), len(theirs)) and ours[right] == theirs[right]:
                right += 1
            rows.append((right, max(len(ours), len(theirs), 1)))
        return np.array(rows, float)

    def value(self, total):
        positive(words=total[1])
        return total[0] / total[1]
