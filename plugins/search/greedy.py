"""Greedy search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm_plugins.search._one_by_one import OneByOne, Output


class Greedy(OneByOne):
    """The most probable token at each step.

    Options: max_ratio and max_extra bound the output at max_ratio · source length + max_extra tokens, max_length at so
    many; min_length: no end before so many tokens, whatever max_ratio says; no_repeat_ngram: no run of so many tokens
    twice in an output (arXiv:1705.04304; 0: any); unknown: whether the unknown piece may be written.
    """

    greedy_with = {}

    def choose(self, log_probs: Tensor, outputs: Sequence[Output]) -> np.ndarray:
        return ops.argmax(log_probs)
