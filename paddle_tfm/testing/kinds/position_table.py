"""What holds for the tables of a positional encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.registry import parameters
from paddle_tfm.testing.hook_outputs import HEAD_DIM, HEADS, WIDTH, checked_term, noise, position_ids
from paddle_tfm.testing.kinds.position import LONG, encoding_of
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result
from paddle_tfm.testing.size import MAX_LENGTH
from paddle_tfm.testing.subject import Subject

REDRAWS = 12  # of parameters


@check(
    "position",
    invariant="every row of a table of the encoding is reached by some position or distance, and not only by "
    "distances to later tokens where these are not seen (if the class gets `site`)",
    consequence="a table is only used in part: positions that should differ share a row, and the rest never learns",
    hint="indices: what they are clipped to, an offset, a division; a table larger than the text can be; two "
    "directions where `site.causal` leaves one",
)
def rows_reached(subject: Subject) -> Result:
    for name in subject.site_names:
        encoding, causal = encoding_of(subject, name), subject.site(name).causal
        tables = {name: p for name, p in encoding.named_parameters() if p.ndim > 1 and max(p.shape) > 2}
        # Who gets `site` knows where no later token is seen, and needs no rows for these there; others cannot know.
        knowing = {each for each in tables if "site" in parameters(_owner(encoding, each))} if causal else set()
        for those, seen in ((tables.keys() - knowing, False), (knowing, True)):
            reached = _reached(encoding, {each: tables[each] for each in those}, seen)
            for table, rows in reached.items():
                if dead := _dead_rows(rows):
                    of = f"{dead} {table} {list(rows.shape)}"
                    by = "no distance to an earlier token or itself" if seen else "no distance"
                    return Failed(f"{name}: {of} are reached by {by} in texts of up to {LONG} tokens")
    return Passed()


def _owner(encoding: PositionalEncoding, parameter: str) -> Any:
    """The class of the innermost encoding that holds a parameter of this name: of a chain, its part."""
    layers = encoding.named_sublayers(include_self=True)
    holders = [(name, layer) for name, layer in layers if isinstance(layer, PositionalEncoding)]
    return type([layer for name, layer in holders if parameter.startswith(name)][-1])


def _dead_rows(reached: np.ndarray) -> str:
    """Which rows of a table, along any axis, nothing reaches: "8 of 16 rows (the first is row 8) of"; "" where none."""
    for axis in range(reached.ndim):
        dead = np.array(~reached.any(tuple(i for i in range(reached.ndim) if i != axis)))
        # One inside is no mistake: T5's own buckets have none for "later, at distance 0".
        if dead[[0, -1]].any() or dead.sum() > 1:
            return f"{int(dead.sum())} of {len(dead)} rows (the first is row {int(dead.argmax())}) of"
    return ""


def _reached(encoding: PositionalEncoding, tables: dict[str, Tensor], causal: bool) -> dict[str, np.ndarray]:
    """Name of a table → which of its numbers get a gradient from some positions or distances."""
    reached = {name: np.zeros(p.shape, dtype=bool) for name, p in tables.items()}
    if not tables:
        return {}
    rng = np.random.default_rng(13)
    step = 1 if encoding.uses() <= {"embed", "rotate"} else 3  # of pairs of positions there are many
    for _ in range(REDRAWS):  # a kink may hide a unit from some values
        for p in encoding.parameters():
            p.set_value(rng.normal(size=p.shape).astype("float32"))
        for positions in (np.arange(MAX_LENGTH), np.array([0, *range(MAX_LENGTH, LONG, step), LONG - 1])):
            encoding.clear_gradients()
            try:
                _summed(encoding, position_ids(*positions.tolist()), rng, causal).backward()
            except Exception:  # beyond its length it may refuse
                continue
            for name, p in tables.items():
                if p.grad is not None:
                    reached[name] |= p.grad.numpy() != 0
    return reached


def _summed(encoding: PositionalEncoding, positions: Tensor, rng: np.random.Generator, causal: bool) -> Tensor:
    """Everything that the hooks give for these positions, with random signs, as one number; `causal`: of pairs those
    that attention sees."""
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
    pairs = paddle.ones([length, length])
    seen = paddle.tril(pairs) if causal else pairs
    if "bias" in uses:
        parts.append(checked_term("bias", encoding.bias(positions, positions)) * seen)
    if "scores" in uses:
        parts.append(checked_term("scores", encoding.scores(q, k, positions, positions)) * seen)
    if "values" in uses:
        weights = paddle.to_tensor(rng.random([1, HEADS, length, length]).astype("float32")) * seen
        parts.append(encoding.values(weights, positions, positions))
    total = paddle.zeros([])
    for part in parts:
        if part is not None:
            total = total + (part * paddle.to_tensor(rng.normal(size=part.shape).astype("float32"))).sum()
    return total
