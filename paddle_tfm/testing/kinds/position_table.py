"""What holds for the tables of a positional encoding."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.testing.hook_outputs import HEAD_DIM, HEADS, WIDTH, noise, position_ids
from paddle_tfm.testing.kinds.position import LONG, encoding_of
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result
from paddle_tfm.testing.size import MAX_LENGTH
from paddle_tfm.testing.subject import Subject

REDRAWS = 12  # of parameters


@check(
    "position",
    invariant="every row of a table of the encoding is reached by some position or distance",
    consequence="a table is only used in part: positions that should differ share a row, and the rest never learns",
    hint="indices: what they are clipped to, an offset, a division; a table larger than the text can be",
)
def rows_reached(subject: Subject) -> Result:
    for site in subject.site_names:
        encoding = encoding_of(subject, site)
        tables = {name: p for name, p in encoding.named_parameters() if p.ndim > 1 and max(p.shape) > 2}
        reached = {name: np.zeros(p.shape, dtype=bool) for name, p in tables.items()}
        if not tables:
            continue
        rng = np.random.default_rng(13)
        step = 1 if encoding.uses() <= {"embed", "rotate"} else 3  # of pairs of positions there are many
        for _ in range(REDRAWS):  # a kink may hide a unit from some values
            for p in encoding.parameters():
                p.set_value(rng.normal(size=p.shape).astype("float32"))
            for positions in (np.arange(MAX_LENGTH), np.array([0, *range(MAX_LENGTH, LONG, step), LONG - 1])):
                encoding.clear_gradients()
                try:
                    _summed(encoding, position_ids(*positions.tolist()), rng).backward()
                except Exception:  # beyond its length it may refuse
                    continue
                for name, p in tables.items():
                    if p.grad is not None:
                        reached[name] |= p.grad.numpy() != 0
        for name, rows in reached.items():
            for axis in range(rows.ndim):
                dead = np.array(~rows.any(tuple(i for i in range(rows.ndim) if i != axis)))
                # One inside is no mistake: T5's own buckets have none for "later, at distance 0".
                if dead[[0, -1]].any() or dead.sum() > 1:
                    return Failed(f"{site}: {int(dead.sum())} of {len(dead)} rows of {name} {list(rows.shape)} are "
                                  f"reached by no distance in texts of up to {LONG} tokens, the first is row "
                                  f"{int(dead.argmax())}")  # fmt: skip
    return Passed()


def _summed(encoding: PositionalEncoding, positions: Tensor, rng: np.random.Generator) -> Tensor:
    """Everything that the hooks give for these positions, with random signs, as one number."""
    length, uses = positions.shape[1], encoding.uses()
    parts: list[Tensor | None] = []
    q = noise(1, 1, HEADS, length, HEAD_DIM)
    k = noise(2, 1, HEADS, length, HEAD_DIM)
    if rng.random() < 0.5:  # all alike and loud: gates that count tokens are open
        q = k = 3.0 * q[:, :, :1].expand(q.shape)
    if "embed" in uses:
        parts.append(encoding.embed(noise(3, 1, length, WIDTH), positions))
    if "rotate" in uses:
        parts += [encoding.query(q, positions), encoding.key(k, positions)]
    if "bias" in uses:
        parts.append(encoding.bias(positions, positions))
    if "scores" in uses:
        parts.append(encoding.scores(q, k, positions, positions))
    if "values" in uses:
        weights = paddle.to_tensor(rng.random([1, HEADS, length, length]).astype("float32"))
        parts.append(encoding.values(weights, positions, positions))
    total = paddle.zeros([])
    for part in parts:
        if part is not None:
            total = total + (part * paddle.to_tensor(rng.normal(size=part.shape).astype("float32"))).sum()
    return total
