"""What holds for a positional encoding beyond the longest text, and for its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.options import parameters
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.testing.adapters.layers import OrdinaryEncoding
from paddle_tfm.testing.kinds.layers.position import encoding_of, trained
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import (
    HEAD_DIM,
    HEADS,
    WIDTH,
    accepted_length,
    begin_again,
    checked_term,
    hook_outputs,
    noise,
    position_ids,
    terms,
)
from paddle_tfm.testing.models.size import MAX_LENGTH
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip

LONG = 4 * MAX_LENGTH  # positions
FAR = 2000  # positions
WORDS = 8  # of a text that begins at 0, or behind the longest
MAX_FAR_SCORE = 30.0  # what a far key's score may be above a near one's


@check(
    "position",
    invariant="a bias does not grow with distance without end",
    consequence="the farthest word gets all attention, more so the longer the text is",
    hint="the sign of the slope; which of the two positions is subtracted from which",
)
def nearness(subject: ComponentUnderTest) -> Result:
    for site in subject.site_names:
        encoding = encoding_of(subject, site)
        if "bias" not in encoding.uses():
            return Skip("it has no bias")
        last = accepted_length(encoding, FAR + 1) - 1
        keys = np.linspace(0, last, 41).astype("int64")
        for query, side in ((last, "before"), (0, "after")):
            if side == "after" and subject.site(site).causal:
                continue
            with paddle.no_grad():
                bias = checked_term("bias", encoding.bias(position_ids(query), position_ids(*keys.tolist())))
            rows = np.broadcast_to(bias.numpy()[0], (bias.shape[1], 1, len(keys)))[:, 0]
            if side == "before":
                rows = rows[:, ::-1]
            excess = float((rows[:, -1] - rows[:, 0]).max())
            if excess > MAX_FAR_SCORE:
                return Failed(
                    f"{site}: a key {last:,} positions away, {side} the query, gets {excess:.0f} more than the nearest"
                )
    return Passed()


@check(
    "position",
    invariant="beyond the trained length it gives finite numbers that do not start over, or refuses with a message",
    consequence="a long sentence ends in a crash or NaN, or its end looks like its beginning",
    hint="indices beyond a table (clip them, and say so; modulo its length they begin again), functions of the "
    "position that overflow",
)
def beyond_length(subject: ComponentUnderTest) -> Result:
    for site in subject.site_names:
        encoding = encoding_of(subject, site)
        positions = position_ids(*range(0, LONG, 3))
        try:
            outputs = hook_outputs(encoding, positions, positions)
        except ValueError as error:
            if "InvalidArgument" in str(error) or "[Hint" in str(error):  # Paddle's, of an operator
                if isinstance(encoding, OrdinaryEncoding):  # whose author promised no sentence
                    return Note(f"beyond {MAX_LENGTH} positions it ends in an error of Paddle's")
                return Failed(f"{site}: positions up to {LONG} (max_length {MAX_LENGTH}) end in an error of Paddle's")
            return Note(f"beyond {MAX_LENGTH} positions it refuses: {error}")
        for hook, numbers in outputs.items():
            if not np.isfinite(numbers).all():
                return Failed(f"{hook} is not finite at positions up to {LONG} (max_length {MAX_LENGTH})")
        trained(encoding)
        if begin_again(encoding, range(WORDS), range(MAX_LENGTH, MAX_LENGTH + WORDS)):
            return Failed(f"{site}: positions {MAX_LENGTH} … begin again as 0 … (max_length {MAX_LENGTH})")
    return Passed()


REDRAWS = 12  # of parameters
FARTHEST, DENSE = 2**16, 2**12  # positions: the last, and of how many every one is tried


@check(
    "position",
    invariant="every row of the encoding's table is used by some position or distance; with `site`, distances to "
    "later tokens count only where these are visible",
    consequence="only a part of a table is used: positions that should differ share a row, and the other rows "
    "never learn",
    hint="indices: what they are clipped to, an offset, a division; a table larger than the text can be; two "
    "directions where `site.causal` leaves one",
)
def rows_reached(subject: ComponentUnderTest) -> Result:
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
    subject: ComponentUnderTest, encoding: PositionalEncoding, tables: dict[str, Tensor], earlier: bool
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


def _texts(subject: ComponentUnderTest, encoding: PositionalEncoding, rows: int) -> Iterator[list[int]]:
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
    length = positions.shape[1]
    q = noise(1, 1, HEADS, length, HEAD_DIM)
    k = noise(2, 1, HEADS, length, HEAD_DIM)
    if rng.random() < 0.5:  # all alike and loud: gates that count tokens are open
        q = k = 3.0 * q[:, :, :1].expand(q.shape)
    pairs = paddle.ones([length, length])
    seen = paddle.tril(pairs) if causal else pairs
    weights = seen
    if "values" in encoding.uses():
        weights = paddle.to_tensor(rng.random([1, HEADS, length, length]).astype("float32")) * seen
    x, total = noise(3, 1, length, WIDTH), paddle.zeros([])
    for hook, term in terms(encoding, x, q, k, weights, positions, positions).items():
        part = term * seen if hook in ("bias", "scores") else term
        total = total + (part * paddle.to_tensor(rng.normal(size=part.shape).astype("float32"))).sum()
    return total
