"""Batches: as many examples as a budget of tokens allows, of like length or of all lengths, in an order that the seed
decides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from paddle_tfm import randomness
from paddle_tfm.data.codec import Encoded, EncodedTexts
from paddle_tfm.data.vocabulary import BOS, PAD

if TYPE_CHECKING:
    from paddle import Tensor

Array = TypeVar("Array")  # np.ndarray or Tensor
Other = TypeVar("Other")


@dataclass(frozen=True)
class Batch(Generic[Array]):
    """Padded ids (B batch, S source length, T target length), int64; validity is bool, True for a real token. As arrays
    (`Batch[np.ndarray]`, from `collate`) or as tensors (`Batch[Tensor]`, from `tensors`).

    `target_in` begins with the begin token, `target_out` ends with the end token. The `copy` parts are in the target
    vocabulary extended by `extra` source words (`Encoded`). `index` [B] says which examples these are.
    """

    source: Array  # [B, S]
    source_valid: Array  # [B, S]
    copy_ids: Array  # [B, S]
    target_in: Array  # [B, T]
    target_out: Array  # [B, T]
    target_copy: Array  # [B, T]
    target_valid: Array  # [B, T]
    extra: int
    index: np.ndarray  # [B]
    tokens: int  # real target tokens

    def tensors(self: Batch[np.ndarray]) -> Batch[Tensor]:
        """The same with Paddle tensors on the current device."""
        import paddle

        return self.map_arrays(lambda part: paddle.to_tensor(part))

    def map_arrays(self, function: Callable[[Array], Other]) -> Batch[Other]:
        """A copy of this batch with `function` applied to every padded array."""
        arrays = {item.name: function(getattr(self, item.name)) for item in fields(self) if item.type == "Array"}
        return cast("Batch[Other]", self.replace(**arrays))

    def rows(self: Batch[np.ndarray], first: int, last: int) -> Batch[np.ndarray]:
        """The rows from `first` up to `last`, padded as before; of a batch of arrays."""
        part = self.map_arrays(lambda rows: rows[first:last])
        return part.replace(index=self.index[first:last], tokens=int(part.target_valid.sum()))

    def padded(self: Batch[np.ndarray], columns: int, target: bool = True) -> Batch[np.ndarray]:
        """The same rows with so many columns of padding more; of a batch of arrays. `target`: on that side too."""
        more = np.zeros((len(self.index), columns), np.int64)  # PAD, and False
        sides = ("source", "copy", "target") if target else ("source", "copy")
        arrays = {item.name: getattr(self, item.name) for item in fields(self) if item.name.split("_")[0] in sides}
        wider = {name: np.concatenate([rows, more.astype(rows.dtype)], 1) for name, rows in arrays.items()}
        return self.replace(**wider)

    def replace(self, **fields: Any) -> Batch[Array]:
        """A copy of this batch in which `fields` have other values."""
        return replace(self, **fields)


ARRAYS = [field.name for field in fields(Batch) if field.name not in ("extra", "tokens")]


def packed(batches: Sequence[Batch[np.ndarray]]) -> tuple[list[dict[str, int]], dict[str, np.ndarray]]:
    """What each batch has beside its arrays, and all arrays, each by the number of its batch and its name."""
    beside = [{"extra": int(batch.extra), "tokens": int(batch.tokens)} for batch in batches]
    return beside, {f"{i}.{name}": getattr(batch, name) for i, batch in enumerate(batches) for name in ARRAYS}


def unpacked(beside: Sequence[dict[str, Any]], arrays: Mapping[str, np.ndarray]) -> list[Batch[np.ndarray]]:
    """The batches of which `packed` made this."""
    values: list[dict[str, Any]] = [{name: arrays[f"{i}.{name}"] for name in ARRAYS} for i in range(len(beside))]
    return [Batch(**of_one, **rest) for of_one, rest in zip(values, beside)]


def collate(examples: Sequence[Encoded], index: Sequence[int] | None = None) -> Batch[np.ndarray]:
    """Pad examples to the longest of them."""
    target = _pad([example.target for example in examples])
    target_valid = _valid([len(example.target) for example in examples])
    begin = np.full((len(examples), 1), BOS, dtype=np.int64)
    return Batch(
        source=_pad([example.source for example in examples]),
        source_valid=_valid([len(example.source) for example in examples]),
        copy_ids=_pad([example.copy for example in examples]),
        target_in=np.concatenate([begin, target[:, :-1]], axis=1) * target_valid,
        target_out=target,
        target_copy=_pad([example.target_copy for example in examples]),
        target_valid=target_valid,
        extra=max(len(example.extra) for example in examples),
        index=np.asarray(range(len(examples)) if index is None else index),
        tokens=int(target_valid.sum()),
    )


def _pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for row, ids in zip(padded, rows):
        row[: len(ids)] = ids
    return padded


def _valid(lengths: Sequence[int]) -> np.ndarray:
    return np.arange(max(lengths))[None, :] < np.asarray(lengths)[:, None]


def _chop(order: np.ndarray, longer: np.ndarray, max_tokens: int, max_rows: int | None = None) -> Iterator[list[int]]:
    """Consecutive groups whose padded size, rows × the longer side, stays within `max_tokens`; of `max_rows` at
    most."""
    group: list[int] = []
    longest = 0
    for i, length in zip(order.tolist(), longer[order].tolist()):
        if group and (max(longest, length) * (len(group) + 1) > max_tokens or len(group) == max_rows):
            yield group
            group, longest = [], 0
        group.append(i)
        longest = max(longest, length)
    if group:
        yield group


def lengths(examples: Sequence[Encoded]) -> np.ndarray:
    """How many pieces the source and the target of each example have: int64 [2, N]."""
    if isinstance(examples, EncodedTexts):
        return examples.lengths.T
    return np.array([(len(each.source), len(each.target)) for each in examples], np.int64).reshape(-1, 2).T


def in_order(examples: Sequence[Encoded], max_tokens: int, max_rows: int | None = None) -> Iterator[Batch[np.ndarray]]:
    """All examples once, the longest first: for evaluation and translation."""
    source, target = lengths(examples)
    order = np.lexsort((-target, -source))
    for group in _chop(order, np.maximum(source, target), max_tokens, max_rows):
        yield collate([examples[i] for i in group], group)


class Stream:
    """Training batches without end: every epoch all examples, in an order that is a function of (seed, epoch), as are
    the segmentations where the tokenizer draws them. `epoch` and `position` say where it stands, and can be set to
    continue from there.

    `batches` "by_length": the epoch sorted by length, cut into batches, and these shuffled: little padding. "mixed":
    the epoch shuffled, and cut as it comes: each batch is a random sample of the corpus, and padded to its longest.

    Batches are planned from the lengths of the best segmentations, and a sampled one may be longer; where it is longer
    than `max_length`, the best one is used.
    """

    def __init__(
        self,
        examples: EncodedTexts,
        max_tokens: int,
        seed: int,
        max_length: int | None = None,
        batches: str = "by_length",
    ):
        self.examples, self.max_tokens, self.seed, self.max_length = examples, max_tokens, seed, max_length
        self.batches = batches
        self.epoch, self.position = 0, 0
        self._planned: tuple[int, list[list[int]]] | None = None

    def __next__(self) -> Batch[np.ndarray]:
        plan = self._plan(self.epoch)
        if self.position == len(plan):
            self.epoch, self.position = self.epoch + 1, 0
            plan = self._plan(self.epoch)
        group = plan[self.position]
        self.position += 1
        return collate([self._example(i) for i in group], group)

    def _example(self, i: int) -> Encoded:
        if not self.examples.sampling:
            return self.examples[i]
        sample = self.examples.sample(i, randomness.generator(self.seed, "pieces", self.epoch, i))
        longest = max(len(sample.source), len(sample.target))
        return sample if self.max_length is None or longest <= self.max_length else self.examples[i]

    def _plan(self, epoch: int) -> list[list[int]]:
        if self._planned is None or self._planned[0] != epoch:
            rng = randomness.generator(self.seed, "batches", epoch)
            source, target = self.examples.lengths.T
            longer = np.maximum(source, target)
            if self.batches == "mixed":
                self._planned = epoch, list(_chop(rng.permutation(len(self.examples)), longer, self.max_tokens))
                return self._planned[1]
            order = np.lexsort((rng.random(len(self.examples)), source, longer))
            groups = list(_chop(order, longer, self.max_tokens))
            self._planned = epoch, [groups[i] for i in rng.permutation(len(groups))]
        return self._planned[1]

    def planned_tokens(self) -> Iterator[int]:
        """The target tokens of each batch from the first on, as planned: a sampled segmentation may be longer."""
        for epoch in itertools.count():
            for group in self._plan(epoch):
                yield int(self.examples.lengths[group, 1].sum())

    def most_rows(self) -> int:
        """The rows of the largest batch of the first epoch."""
        return max(map(len, self._plan(0)))

    def usual_rows(self) -> int:
        """The rows of a batch in the middle of the first epoch's, from the fewest to the most."""
        return sorted(map(len, self._plan(0)))[len(self._plan(0)) // 2]

    def padding(self) -> float:
        """The share of the first epoch's positions, of sources and targets together, that are padding."""
        sides = self.examples.lengths
        padded = sum(len(group) * int(sides[group].max(0).sum()) for group in self._plan(0))
        return 1.0 - int(sides.sum()) / padded
