"""Random arguments of the ops of `paddle_tfm.ops`: what kernels of them are tried on. Importing this registers them."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm.kernels import examples

NUMBERS = (1, 2, 5, 17, 300)  # of rows
WIDTHS = (3, 16, 20, 33, 130, 600)  # of rows, also such as 16 does not divide
LOUD = (1.0, 1.0, 30.0, 200.0)  # the size of logits; exp of the last is no float32 number


def normal(rng: np.random.Generator, *shape: int, size: float = 1.0) -> Tensor:
    """Normal numbers, float32, around 0."""
    return paddle.to_tensor(rng.normal(scale=size, size=shape).astype("float32"))


def rows(rng: np.random.Generator, size: float = 1.0) -> Tensor:
    """[N, C]."""
    return normal(rng, int(rng.choice(NUMBERS)), int(rng.choice(WIDTHS)), size=size)


@examples(ops.linear)
def linear(rng: np.random.Generator) -> tuple[object, ...]:
    """x [B, T, I] or [N, I], with a bias and without, the weight as it is and transposed."""
    inner, width, transpose = int(rng.choice(WIDTHS)), int(rng.choice(WIDTHS)), bool(rng.random() < 0.3)
    shape = [2, int(rng.choice(NUMBERS))] if rng.random() < 0.5 else [int(rng.choice(NUMBERS))]
    weight = normal(rng, *((width, inner) if transpose else (inner, width)), size=inner**-0.5)
    return normal(rng, *shape, inner), weight, normal(rng, width) if rng.random() < 0.7 else None, transpose


@examples(ops.dropped)
def dropped(rng: np.random.Generator) -> tuple[object, ...]:
    """Of every rate."""
    x, rate = rows(rng), float(rng.uniform(0.0, 0.9))
    return x, rng.random(x.size) >= rate, 1 / (1 - rate)


@examples(ops.log_sum_exp)
@examples(ops.log_softmax_)
def logits(rng: np.random.Generator) -> tuple[object, ...]:
    """Small and large ones."""
    return (rows(rng, float(rng.choice(LOUD))),)


@examples(ops.softmax_nll)
def logits_and_targets(rng: np.random.Generator) -> tuple[object, ...]:
    """The same, and a word of each row."""
    (words,) = logits(rng)
    return words, paddle.to_tensor(rng.integers(0, words.shape[1], words.shape[0]))


@examples(ops.mean_over_channels)
def one_matrix(rng: np.random.Generator) -> tuple[object, ...]:
    """[N, C]."""
    return (rows(rng),)


@examples(ops.argmax)
def with_equals(rng: np.random.Generator) -> tuple[object, ...]:
    """Half of them whole numbers, of which several are the largest."""
    matrix = rows(rng)
    return (matrix.round() if rng.random() < 0.5 else matrix,)


@examples(ops.sum_over_rows)
def weights_and_rows(rng: np.random.Generator) -> tuple[object, ...]:
    """[N, 1], [N, C]."""
    matrix = rows(rng)
    return normal(rng, matrix.shape[0], 1), matrix


@examples(ops.outer)
def column_and_row(rng: np.random.Generator) -> tuple[object, ...]:
    """[N, 1], [1, C]."""
    return normal(rng, int(rng.choice(NUMBERS)), 1), normal(rng, 1, int(rng.choice(WIDTHS)))


@examples(ops.add_outer)
def rows_column_and_row(rng: np.random.Generator) -> tuple[object, ...]:
    """[N, C], [N, 1], [1, C]."""
    column, row = column_and_row(rng)
    return normal(rng, column.shape[0], row.shape[1]), column, row


@examples(ops.pick)
def rows_and_columns(rng: np.random.Generator) -> tuple[object, ...]:
    """A column of each row."""
    matrix = rows(rng)
    return matrix, rng.integers(0, matrix.shape[1], matrix.shape[0])


@examples(ops.top_k)
def rows_and_number(rng: np.random.Generator) -> tuple[object, ...]:
    """Of few words, and of as many as a vocabulary has."""
    width = int(rng.choice([20, 700, 3000, 9000]))
    return normal(rng, int(rng.choice(NUMBERS[:-1])), width), int(rng.integers(1, 9))
