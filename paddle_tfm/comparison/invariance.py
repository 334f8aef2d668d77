"""The same texts in batches of several sizes: what changes is not the texts' doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import paddle

from paddle_tfm.data.batches import collate
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example

SIZES = (8, 64)
SENTENCES = 16  # that are looked at; a larger batch has others beside them


class Change(NamedTuple):
    """What a batch of `size` changes beside each of `sentences` alone, under teacher forcing: `drift`, the largest
    change of a reference's log-probability in nats, and in how many sentences another piece becomes the most probable
    somewhere (`changed`)."""

    size: int
    sentences: int
    drift: float
    changed: int


def changes(model: Transformer, codec: Codec, texts: Sequence[tuple[str, str]]) -> list[Change]:
    """Of (source, reference) the first `SENTENCES`, in batches of `SIZES` in the order that texts have; of fewer texts
    than the largest the sizes up to all."""
    examples = [codec.encode(Example(*text)) for text in texts]
    sizes = [size for size in SIZES if size < len(examples)] + [min(len(examples), SIZES[-1])]
    model.eval()
    alone = _in_batches(model, examples[:SENTENCES], 1)
    results = []
    for size in dict.fromkeys(sizes):
        together = _in_batches(model, examples[: max(size, SENTENCES)], size)
        drift = max(abs(score - other) for (score, _), (other, _) in zip(alone, together))
        changed = sum(not np.array_equal(best, other) for (_, best), (_, other) in zip(alone, together))
        results.append(Change(size, len(alone), drift, changed))
    return results


@paddle.no_grad()
def _in_batches(model: Transformer, examples: Sequence[Encoded], size: int) -> list[tuple[float, np.ndarray]]:
    """Of each example the log-probability of its reference, and at each position the most probable piece [T], with
    `size` examples in a batch."""
    results = []
    for start in range(0, len(examples), size):
        batch = collate(examples[start : start + size]).tensors()
        log_probs = model.head.log_probs(*model(batch))
        scores = log_probs.take_along_axis(model.target(batch).unsqueeze(-1), -1).squeeze(-1).astype("float64").numpy()
        best, valid = log_probs.argmax(-1).numpy(), batch.target_valid.numpy()
        results += [(float(scores[i][real].sum()), best[i][real]) for i, real in enumerate(valid)]
    return results
