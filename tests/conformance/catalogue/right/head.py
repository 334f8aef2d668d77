"""A softmax over an output matrix: the twin of mutants of a head."""

import paddle
import paddle.nn.functional as F

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Head


class Twin(Head):
    def __init__(self, d_model: int, vocab_size: int, pad_id: int):
        super().__init__()
        self.pad_id, self.vocab_size = pad_id, vocab_size
        self.output = Linear(d_model, vocab_size)

    def log_probs(self, h, memory):
        logits = self.output(h)
        return logits - paddle.logsumexp(logits, -1, keepdim=True)

    def loss(self, h, target, memory, smoothing=0.0):
        log_probs = self.log_probs(h, memory)
        words = 1.0 - F.one_hot(paddle.to_tensor(self.pad_id), self.vocab_size).astype(log_probs.dtype)
        picked = paddle.take_along_axis(log_probs, target.unsqueeze(-1), -1).squeeze(-1)
        spread = (log_probs * words).sum(-1) / words.sum()
        return -(1.0 - smoothing) * picked - smoothing * spread
