"""What holds for the tables of a positional encoding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.options import parameters
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.testing.hook_outputs import HEAD_DIM, HEADS, WIDTH, accepted_length, checked_term, noise, position_ids
from paddle_tfm.testing.kinds.position import encoding_of
from paddle_tfm.testing.kinds.position_length import LONG
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result
from paddle_tfm.testing.size import MAX_LENGTH
from paddle_tfm.testing.subject import Subject

REDRAWS = 12  # of parameters
FARTHEST, DENSE = 2**16, 2**12  # positions: the last, and of how many every one is tried


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
        for those, earlier in ((tables.keys() - knowing, False), (knowing, True)):
            some = {each: tables[each] for each in those}
            reached, end = _reached(subject, encoding, some, earlier) if some else ({}, 0)
            for table, rows in reached.items():
                if dead := _unreached(rows, "to an earlier token or itself " if earlier else ""):
                    return Failed(f"{name}: {dead} of {table} {list(rows.shape)}, in texts of up to {end:,} tokens")
    return Passed()


def _owner(encoding: PositionalEncoding, parameter: str) -> Any:
    """The class of the innermost encoding that holds a parameter of this name: of a chain, its part."""
    layers = encoding.named_sublayers(include_self=True)
    holders = [(name, layer) for name, layer in layers if isinstance(layer, PositionalEncoding)]
    return type([layer for name, layer in holders if parameter.startswith(name)][-1])


def _reached(
    subject: Subject, encoding: PositionalEncoding, tables: dict[str, Tensor], earlier: bool
) -> tuple[dict[str, np.ndarray], int]:
    """Name of a table → which of its numbers get a gradient from some positions or distances (`earlier`: to earlier
    tokens); and the length of the longest text that was tried."""
    reached = {name: np.zeros(p.shape, dtype=bool) for name, p in tables.items()}
    rng, end = np.random.default_rng(13), 0
    for positions in _texts(subject, encoding, max(max(p.shape) for p in tables.values())):
        for _ in range(REDRAWS):  # a kink may hide a unit from some values
            for p in encoding.parameters():
                p.set_value(rng.normal(size=p.shape).astype("float32"))
            encoding.clear_gradients()
            _summed(encoding, position_ids(*positions), rng, earlier).backward()
            for name, p in tables.items():
                if p.grad is not None:
                    reached[name] |= p.grad.numpy() != 0
        end = max(end, positions[-1] + 1)
        if not any(_unreached(rows) for rows in reached.values()):
            break
    return reached, end


def _unreached(rows: np.ndarray, which: str = "") -> str:
    """Which rows of a table got no gradient, in words; "" where all did. `which`: distances that count."""
    for axis in range(rows.ndim):
        dead = np.array(~rows.any(tuple(i for i in range(rows.ndim) if i != axis)))
        # One inside is no mistake: T5's own buckets have none for "later, at distance 0".
        if dead[[0, -1]].any() or dead.sum() > 1:
            first = int(dead.argmax())
            return f"no distance {which}reaches {int(dead.sum())} of {len(dead)} rows, the first is row {first},"
    return ""


def _texts(subject: Subject, encoding: PositionalEncoding, rows: int) -> Iterator[list[int]]:
    """Positions of one text after another, the longest last: all of a short one, and spread ones of longer texts, as
    far as a table of so many rows may reach: its rows may be positions, or the digits of one (`rows` squared), or end
    at a length that an option says. None beyond those that the encoding takes."""
    if not rows:
        return
    cls: Any = subject.cls
    numbers = [option.default for option in parameters(cls).values()] + list(subject.spec.values())
    of_options = [number for number in numbers if type(number) is int]
    taken, by_position = 0, encoding.uses() <= {"embed", "rotate"}  # of pairs of positions there are many
    longer = {min(end, FARTHEST) for end in (rows, rows**2, *(number + 1 for number in of_options)) if end > LONG}
    for end in (MAX_LENGTH, LONG, *sorted(longer)):
        accepted = accepted_length(encoding, end)
        if accepted <= taken:
            return
        taken = accepted
        dense = min(taken, max(LONG, rows), DENSE) if by_position else min(taken, MAX_LENGTH)
        yield sorted({*range(dense), *_spread(taken)})


def _spread(end: int) -> list[int]:
    """Some of the positions below `end`, 2 sqrt(end), between which there are all distances below it."""
    step = math.isqrt(end - 1) + 1
    return sorted({*range(min(step, end)), *range(0, end, step), end - 1})


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
