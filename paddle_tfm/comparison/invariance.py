"""The same texts in batches of several sizes: what changes is not the texts' doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paddle_tfm.data.batches import collate
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example, Search
from paddle_tfm.search.decoding import decode_batch
from paddle_tfm.train.evaluate import teacher_forced

SIZES = (8, 64)


class Change(NamedTuple):
    """What a batch of `size` changes beside each of `sentences` alone: `drift`, the largest change of a reference's
    log-probability in nats, and how many outputs are `changed`."""

    size: int
    sentences: int
    drift: float
    changed: int


def changes(model: Transformer, codec: Codec, texts: Sequence[tuple[str, str]], search: Search) -> list[Change]:
    """Of (source, reference) in the order that they have, in batches of `SIZES`; of fewer texts the sizes up to all."""
    examples = [codec.encode(Example(*text)) for text in texts]
    sizes = [size for size in SIZES if size < len(examples)] + [min(len(examples), SIZES[-1])]
    model.eval()
    scores, outputs = _alone_or_together(model, examples, search, 1)
    results = []
    for size in dict.fromkeys(sizes):
        in_batches, written = _alone_or_together(model, examples, search, size)
        drift = float(np.abs(in_batches - scores).max())
        results.append(Change(size, len(examples), drift, sum(a != b for a, b in zip(outputs, written))))
    return results


def _alone_or_together(
    model: Transformer, examples: Sequence[Encoded], search: Search, size: int
) -> tuple[np.ndarray, list[list[int]]]:
    """The log-probability of each reference, and the ids of each output, with `size` examples in a batch."""
    scores: list[np.ndarray] = []
    outputs: list[list[int]] = []
    for start in range(0, len(examples), size):
        batch = collate(examples[start : start + size]).tensors()
        log_probs, _ = teacher_forced(model, batch)
        scores.append(log_probs.sum(1).numpy())
        numbers = list(range(start, start + len(batch.index)))
        outputs += [list(best.ids) for best, *_ in decode_batch(model, batch, search, sentences=numbers, wanted=1)]
    return np.concatenate(scores), outputs
