"""Random arguments of the ops of `paddle_tfm.ops`, which kernels are tried on; importing this registers them."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm.kernels import examples

NUMBERS = (1, 2, 5, 17, 300)  # of rows
WIDTHS = (3, 16, 20, 33, 130, 600)  # also such as 16 does not divide
LOGIT_SIZES = (1.0, 1.0, 30.0, 200.0)  # exp of the last is no float32 number


def normal(rng: np.random.Generator, *shape: Any, size: float = 1.0) -> Tensor:
    """Normal numbers, float32; a tuple in a shape is a choice of lengths."""
    lengths = [int(rng.choice(each)) if isinstance(each, tuple) else each for each in shape]
    return paddle.to_tensor(rng.normal(scale=size, size=lengths).astype("float32"))


def rows(rng: np.random.Generator, size: float = 1.0) -> Tensor:
    """[N, C]."""
    return normal(rng, NUMBERS, WIDTHS, size=size)


@examples(ops.linear)
def _linear(rng: np.random.Generator) -> tuple[Any, ...]:
    """x [N, I] or [2, N, I], with a bias and without, the weight as it is and transposed."""
    weight, transpose = rows(rng, 0.2), bool(rng.random() < 0.3)
    inner, width = weight.shape[::-1] if transpose else weight.shape
    x = normal(rng, *([2] if rng.random() < 0.5 else []), NUMBERS, inner)
    return x, weight, normal(rng, width) if rng.random() < 0.7 else None, transpose


@examples(ops.dropped)
def _dropped(rng: np.random.Generator) -> tuple[Any, ...]:
    x, rate = rows(rng), float(rng.uniform(0.0, 0.9))
    return x, rng.random(x.size) >= rate, 1 / (1 - rate)


@examples(ops.log_sum_exp)
@examples(ops.log_softmax_)
def _logits(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rows(rng, float(rng.choice(LOGIT_SIZES))),)


@examples(ops.softmax_nll)
def _logits_and_targets(rng: np.random.Generator) -> tuple[Any, ...]:
    (logits,) = _logits(rng)
    return logits, paddle.to_tensor(rng.integers(0, logits.shape[1], logits.shape[0]))


@examples(ops.mean_over_channels)
def _one_matrix(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rows(rng),)


@examples(ops.argmax)
def _with_equals(rng: np.random.Generator) -> tuple[Any, ...]:
    """Half of them whole numbers, of which several are the largest."""
    return (rows(rng).round() if rng.random() < 0.5 else rows(rng),)


@examples(ops.sum_over_rows)
def _weights_and_rows(rng: np.random.Generator) -> tuple[Any, ...]:
    matrix = rows(rng)
    return normal(rng, matrix.shape[0], 1), matrix


@examples(ops.outer)
def _column_and_row(rng: np.random.Generator) -> tuple[Any, ...]:
    return normal(rng, NUMBERS, 1), normal(rng, 1, WIDTHS)


@examples(ops.add_outer)
def _rows_column_and_row(rng: np.random.Generator) -> tuple[Any, ...]:
    matrix = rows(rng)
    return matrix, normal(rng, matrix.shape[0], 1), normal(rng, 1, matrix.shape[1])


@examples(ops.top_k)
def _rows_and_number(rng: np.random.Generator) -> tuple[Any, ...]:
    """Of few words, and of as many as a vocabulary has."""
    return normal(rng, NUMBERS[:-1], (20, 700, 3000, 9000)), int(rng.integers(1, 9))
