"""Positions that are random in each training step, for any other encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import randomness
from paddle_tfm.language import _
from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm.validators import at_least, one_of


class Randomized(PositionalEncoding):
    """Another encoding, trained on positions drawn from a range longer than its texts (Ruoss 2023, arXiv:2305.16843).

    In a training step the positions 0 … n − 1 of a stack become n numbers of [0, longest) in rising order, drawn
    without replacement and shared by the batch (n: tokens of its longest sentence): the encoding meets large positions
    and distances long before a long text comes. Encoder and decoder draw apart. A batch longer than `longest` keeps its
    positions.

    In evaluation position p stands at p · stride. The paper draws there, too, over the whole range; that needs an
    output's length before its first token, and makes a translation depend on a draw. Even steps are what draws are on
    average, so that `stride` should be near `longest` / n for the longest texts to come: with more, they leave the
    range, with less, all texts stand closer than in training. (Reversing 2 to 12 numbers, rotary, 800 steps, one seed:
    with longest 32 and stride 2, 97% of 100 such texts and 80% of 60 with 13 to 16 numbers are right; with stride 1,
    75% and 55%; rotary alone, 100% and 48%.)

    All that goes by position stands there: the other encoding, those beside it in a chain, cross-attention, a window
    (`local`), a kernel (`convolution`), a norm for each position.

    `drawn: distances` is what the authors' code does for relative encodings (their alibi and Transformer-XL; their
    rotary has drawn positions): n − 1 distances of [1, longest) in rising order, and keys d tokens before or behind
    their query stand at the d-th of them, in all pairs alike; 0 stays 0. Each encoding draws its own, positions stay,
    and in evaluation d is d · stride. With `positions` pairs of tokens d apart have different distances in one step.
    The other encoding has to go by differences alone, and is asked once a query: B · Tq times its numbers.

    Options:
        encoding: the other encoding. A table of max_length rows (`learned`) has no rows for a larger `longest`.
        longest: the range, best as long as the longest text to come; None: max_length.
        stride: of evaluation; None: longest / max_length, rounded down, so that max_length tokens stay in the range.
            Where the longest text to come is far shorter than max_length, set it.
        drawn: positions or distances.

    Raises:
        ValueError: it stands in cross-attention, where positions are those that the stacks drew; `longest` or `stride`
            is below 1; distances are drawn for an encoding that is added to embeddings, rotates, or does not go by
            differences alone (`fire`).
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "padding_in_training": "as many positions are drawn as the batch has columns, so that more columns draw others"
    }

    def __init__(
        self,
        encoding: PositionalEncoding,
        site: LayerSite,
        max_length: int,
        longest: int | None = None,
        stride: int | None = None,
        drawn: Literal["positions", "distances"] = "positions",
    ):
        super().__init__()
        if site.sublayer == "cross":
            raise ValueError(
                _(
                    "cross-attention draws no positions, but sees those of the stacks; name the other encoding itself "
                    "there"
                )
            )
        at_least(1, longest=longest, stride=stride)
        one_of(("positions", "distances"), drawn=drawn)
        if drawn == "distances" and not _goes_by_differences(encoding):
            raise ValueError(
                _(
                    "distances can be drawn for an encoding that goes by differences of positions alone (alibi, t5, "
                    "kerple, shaw, transformer_xl), and {name} does not; leave `drawn` at positions"
                ).format(name=type(encoding).__name__)
            )
        self.encoding, self.site, self.drawn = encoding, site, drawn
        self.per_layer = encoding.per_layer
        self.longest = max_length if longest is None else longest
        self.stride = max(1, self.longest // max_length) if stride is None else stride

    def share(self, lowest: PositionalEncoding) -> None:
        self.encoding.share(lowest.encoding)

    def uses(self) -> frozenset[str]:
        return self.encoding.uses()

    def remap(self, positions: Tensor, draw: Callable[[], object] | None) -> Tensor:
        if self.drawn == "distances":
            return self.encoding.remap(positions, draw)
        if draw is None:
            return self.encoding.remap(positions * self.stride, draw)
        ranks = positions.numpy()  # [B|1, T]
        count = int(ranks.max()) + 1
        remapped = np.sort(draw().choice(max(self.longest, count), count, replace=False))
        return self.encoding.remap(paddle.to_tensor(remapped[ranks], place=positions.place), draw)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.embed(x, positions)

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.query(q, positions)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.key(k, positions)

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if self.drawn == "positions" or "bias" not in self.encoding.uses():
            return self.encoding.bias(q_positions, k_positions)
        rows = q_positions.shape[0]
        return _as_queries(self.encoding.bias(*self._pairs(q_positions, k_positions, rows)), rows)

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if self.drawn == "positions" or "scores" not in self.encoding.uses():
            return self.encoding.scores(q, k, q_positions, k_positions)
        batch, _, queries, _ = q.shape
        each = k.unsqueeze(1).expand([batch, queries, *k.shape[1:]]).flatten(0, 1)  # [B · Tq, H, Tk, D]
        pairs = self._pairs(q_positions, k_positions, batch)
        return _as_queries(self.encoding.scores(_as_batch(q), each, *pairs), batch)

    def values(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if self.drawn == "positions" or "values" not in self.encoding.uses():
            return self.encoding.values(weights, q_positions, k_positions)
        pairs = self._pairs(q_positions, k_positions, weights.shape[0])
        return _as_queries(self.encoding.values(_as_batch(weights), *pairs), weights.shape[0])

    def _pairs(self, q_positions: Tensor, k_positions: Tensor, batch: int) -> tuple[Tensor, Tensor]:
        """Each query alone, at 0, and its keys where they stand for it: [B · Tq, 1] and [B · Tq, Tk]."""
        apart = k_positions.unsqueeze(1) - q_positions.unsqueeze(2)  # [B|1, Tq, Tk]
        apart = apart.expand([batch, *apart.shape[1:]]).flatten(0, 1)
        distance, context = apart.abs(), randomness.current_context()
        if self.training and context is not None:
            key = (context.seed, "distances", self.site.stack, self.site.layer, context.step, context.micro_batch)
            count = int(distance.max())
            some = randomness.generator(*key).choice(max(self.longest - 1, count), count, replace=False)
            table = np.concatenate([[0], 1 + np.sort(some)])
            distance = paddle.to_tensor(table[distance.numpy()], place=apart.place)
        else:
            distance = distance * self.stride
        return paddle.zeros([apart.shape[0], 1], "int64"), paddle.sign(apart) * distance


def _as_batch(x: Tensor) -> Tensor:
    """[B, H, Tq, N] → [B · Tq, H, 1, N]."""
    return x.transpose([0, 2, 1, 3]).flatten(0, 1).unsqueeze(2)


def _as_queries(x: Tensor | None, batch: int) -> Tensor | None:
    """[B · Tq, H, 1, N] → [B, H, Tq, N]."""
    return None if x is None else x.reshape([batch, -1, x.shape[1], x.shape[3]]).transpose([0, 2, 1, 3])


def _goes_by_differences(encoding: PositionalEncoding) -> bool:
    """Whether it acts on scores and values alone, and its bias stays when all positions are shifted."""
    if not encoding.uses() or not encoding.uses() <= {"bias", "scores", "values"}:
        return False
    if "bias" not in encoding.uses():
        return True
    at = paddle.to_tensor([[0, 3, 9]])
    here, there = encoding.bias(at, at), encoding.bias(at + 10**6, at + 10**6)
    return here is None or there is None or bool(paddle.allclose(here, there))
