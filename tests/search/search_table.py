"""A language model that is a table: what searches are tried over."""

import numpy as np
import paddle

from paddle_tfm.protocols import MASKED_SCORE, Decoding

BOS, EOS, WORDS = 0, 1, (2, 3, 4)


class Table(Decoding):
    """log p(next | sentence, all tokens so far), drawn once for each prefix; rows are prefixes."""

    bos, eos = BOS, EOS

    def __init__(self, limits, seed=0, sentences=None):
        self.max_lengths, self.seed, self.calls = limits, seed, 0
        self.sentences = list(range(len(limits))) if sentences is None else sentences
        self.rows = [(sentence, ()) for sentence in self.sentences]

    def log_probs(self, sentence, prefix):
        rng = np.random.default_rng([self.seed, sentence, len(prefix), *prefix])
        logits = rng.normal(0, 2.0, 5)
        logits[BOS] = MASKED_SCORE
        return logits - np.log(np.exp(logits).sum())

    def advance(self, tokens):
        self.calls += 1
        self.rows = [
            (sentence, prefix if token == BOS else (*prefix, token))
            for (sentence, prefix), token in zip(self.rows, tokens.tolist())
        ]
        return paddle.to_tensor(np.stack([self.log_probs(*row) for row in self.rows]), dtype="float32")

    def select(self, rows):
        self.rows = [self.rows[row] for row in rows.tolist()]
