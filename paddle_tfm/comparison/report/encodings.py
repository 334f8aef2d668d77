"""What a positional encoding is as numbers: what it adds at each position, or what it does to scores by distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.model.stack import Stack
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.recipe.model_plan import ModelPlan

POSITIONS = 20  # that are shown: distances up to 19
DIMENSIONS = 512  # of a vector, at most
DRAWS = 256  # of queries, where a term depends on them
VECTORS, BY_DISTANCE = "vectors", "by distance"
AXES = {VECTORS: ("position", "dimension"), BY_DISTANCE: ("head", "distance")}


class Picture(NamedTuple):
    """Numbers of one encoding.

    Args:
        what: `VECTORS` [positions, dimensions] or `BY_DISTANCE` [heads, distances].
        where: the stack that it stands in, and the layer where each has its own. meaning: what the numbers are.
        rows, columns: what they are called.
    """

    what: str
    where: str
    meaning: str
    values: np.ndarray
    rows: list[str]
    columns: list[str]

    @property
    def axes(self) -> tuple[str, str]:
        """What rows and columns are."""
        return AXES[self.what]


def pictures(model: Transformer, plan: ModelPlan) -> list[Picture]:
    """Of the encodings of self-attention in both stacks; of several layers with one each the lowest and the highest.
    Where both stacks have the same numbers, these come once."""
    known: list[Picture] = []
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for layer, encoding in _ends(stack):
            where = name if layer is None else f"{name}, layer {layer}"
            geometry = plan.geometry(name, "self")
            sizes = plan.settings.d_model, geometry.score_heads, geometry.head_dim
            for picture in _of(encoding, *sizes, causal=name == "decoder"):
                known = _with(known, picture._replace(where=where))
    return known


def _ends(stack: Stack | None) -> Iterator[tuple[int | None, PositionalEncoding]]:
    if stack is None:
        return
    encodings = list(stack.encodings)
    if len(encodings) == 1:
        yield None, encodings[0]
        return
    yield 0, encodings[0]
    yield len(encodings) - 1, encodings[-1]


def _with(known: list[Picture], picture: Picture) -> list[Picture]:
    """`known` and `picture`; where another place has that already, this one is added there."""
    for i, other in enumerate(known):
        same = other.what == picture.what and other.meaning == picture.meaning
        if same and np.array_equal(other.values, picture.values, equal_nan=True):
            return [*known[:i], other._replace(where=f"{other.where} and {picture.where}"), *known[i + 1 :]]
    return [*known, picture]


@paddle.no_grad()
def _of(encoding: PositionalEncoding, width: int, heads: int, head_dim: int, causal: bool) -> Iterator[Picture]:
    """What `encoding` says without a text. A term that depends on the query is shown by its size."""
    uses = encoding.uses()
    if "embed" in uses:
        positions = encoding.remap(paddle.arange(POSITIONS, dtype="int64").unsqueeze(0), None)
        added = _numbers(encoding.embed(paddle.zeros([1, POSITIONS, width]), positions))[0]  # [T, C]
        names, some = list(map(str, range(POSITIONS))), added[:, :DIMENSIONS]
        meaning = "what is added to the embedding"
        yield Picture(VECTORS, "", meaning, some, names, list(map(str, range(some.shape[1]))))
    keys = encoding.remap(paddle.arange(2 * POSITIONS - 1, dtype="int64").unsqueeze(0), None)  # [1, 2T − 1]
    query = keys[:, POSITIONS - 1 : POSITIONS]
    distances = np.arange(2 * POSITIONS - 1) - (POSITIONS - 1)  # of the key from the query, before it below 0
    kept = distances <= 0 if causal else distances < POSITIONS
    for meaning, values in _by_distance(encoding, uses, query, keys, heads, head_dim):
        shown = np.broadcast_to(values, (values.shape[0], len(distances)))[:, kept]
        alike = len(shown) == 1 or bool((shown == shown[:1]).all())
        rows = ["all"] if alike else list(map(str, range(len(shown))))
        columns = [f"{distance:+d}" if distance else "0" for distance in distances[kept]]
        yield Picture(BY_DISTANCE, "", meaning, shown[: len(rows)], rows, columns)


def _by_distance(
    encoding: PositionalEncoding, uses: frozenset[str], query: Tensor, keys: Tensor, heads: int, head_dim: int
) -> Iterator[tuple[str, np.ndarray]]:
    """(what the numbers are, values [heads, keys]) of each hook that acts on scores."""
    count = keys.shape[1]
    if "bias" in uses and (bias := encoding.bias(query, keys)) is not None:
        yield "what is added to the score", _numbers(bias)[0, :, 0]  # [1, H|1, 1, Tk] -> [H|1, Tk]
    if "rotate" in uses:
        ones = paddle.full([1, heads, count, head_dim], head_dim**-0.5)
        q, k = encoding.query(ones[:, :, :1], query), encoding.key(ones, keys)
        yield "⟨R_m u, R_n u⟩ of the unit vector of ones", _numbers(paddle.matmul(q, k, transpose_y=True))[0, :, 0]
    if "scores" in uses:
        draws = np.random.default_rng(0).normal(size=[DRAWS, heads, 1, head_dim]).astype("float32")
        zeros = paddle.zeros([DRAWS, heads, count, head_dim])
        term = encoding.scores(paddle.to_tensor(draws), zeros, query, keys)
        if term is not None:
            size = np.sqrt(np.square(_numbers(term)[:, :, 0] / head_dim**0.5).mean(0))  # [DRAWS, H, 1, Tk] -> [H, Tk]
            yield "root mean square of what is added to the score, q ~ N(0, 1)", size


def _numbers(x: Tensor) -> np.ndarray:
    return x.astype("float64").numpy()
