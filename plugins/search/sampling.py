"""Sampling: outputs drawn from the model's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import randomness
from paddle_tfm.language import _
from paddle_tfm.protocols import MASKED_SCORE
from paddle_tfm.validators import at_least, between
from paddle_tfm_plugins.search._one_by_one import OneByOne, Output

NUCLEUS_CANDIDATES = 128  # the most probable tokens that are sorted first, in search of those that hold top_p


class Sampling(OneByOne):
    """Tokens drawn from the model's distribution, sharpened or cut at its tail (top-k arXiv:1805.04833, nucleus
    arXiv:1904.09751).

    Formula: p'(v) ∝ p(v)^(1 / temperature) over the `top_k` most probable tokens, of which the fewest stay that hold
    `top_p` of p'. Every draw is keyed by (seed, the sentence's number, the sample's number, step), so that the batch
    does not matter. Scores are log p of the model, not of p'.

    Options: temperature (towards 0: greedy; 1: the model's own); top_k (null: all); top_p in (0, 1]; samples: outputs
    of a sentence, best first, equal ones not merged; seed; max_ratio and max_extra bound the output at max_ratio ·
    source length + max_extra tokens, max_length at so many; min_length: no end before so many tokens, whatever
    max_ratio says; no_repeat_ngram: no run of so many tokens twice in an output (arXiv:1705.04304; 0: any); unknown:
    whether the unknown piece may be written.
    """

    greedy_with = {"top_k": 1, "samples": 1}

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        samples: int = 1,
        seed: int = 1,
        **parent,
    ):
        super().__init__(**parent)
        if not 0 < temperature < math.inf:
            text = _("`temperature` must be a number above 0, but is {temperature}; `greedy` is its limit at 0")
            raise ValueError(text.format(temperature=temperature))
        at_least(1, top_k=top_k)
        between("[1, 10000]", samples=samples)
        between("(0, 1]", top_p=top_p)
        self.temperature, self.top_k, self.top_p, self.seed = temperature, top_k, top_p, seed
        self.nbest = samples

    def choose(self, log_probs: Tensor, outputs: Sequence[Output]) -> np.ndarray:
        weights, tokens = self.weights(log_probs)  # [R, K]
        mass = weights.cumsum(-1)
        draws = paddle.to_tensor([[self._draw(output)] for output in outputs], dtype="float64")  # [R, 1]
        columns = (mass <= draws * mass[:, -1:]).astype("int64").sum(-1, keepdim=True)  # [R, 1]
        return tokens.take_along_axis(columns, 1)[:, 0].numpy()

    def _draw(self, output: Output) -> float:
        """A number in [0, 1) with 53 random bits."""
        key = (self.seed, "sampling", output.sentence, output.number, len(output.ids))
        return (randomness.digest(*key) >> 11) * 2.0**-53

    def weights(self, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """log_probs [R, V'] → weights float64 [R, K] that tokens int64 [R, K] are drawn with, zero for those cut off.

        The tokens stand in the order of their ids: by probability, a difference in the last bit could swap two.
        """
        logits = (log_probs - log_probs.max(-1, keepdim=True)).astype("float64") / self.temperature
        logits = paddle.where(log_probs > MASKED_SCORE / 2, logits, paddle.full_like(logits, -math.inf))
        vocabulary = logits.shape[1]
        if self.top_k is None and self.top_p == 1:
            return logits.exp(), paddle.arange(vocabulary).expand(logits.shape)
        count = min(NUCLEUS_CANDIDATES if self.top_k is None else self.top_k, vocabulary)
        weights, tokens = _largest(logits, count)
        required = self.top_p * (weights if self.top_k else logits.exp()).sum(-1, keepdim=True)
        while self.top_k is None and count < vocabulary and bool((weights.sum(-1, keepdim=True) < required).any()):
            count = min(8 * count, vocabulary)
            weights, tokens = _largest(logits, count)
        before = weights.cumsum(-1) - weights
        weights = paddle.where(before < required, weights, paddle.zeros_like(weights))
        order = tokens.argsort(-1)
        return weights.take_along_axis(order, 1), tokens.take_along_axis(order, 1)


def _largest(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    best, tokens = logits.topk(count)
    return best.exp(), tokens
