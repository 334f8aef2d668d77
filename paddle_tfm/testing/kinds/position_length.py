"""What holds for a positional encoding far from the begin of a text, and beyond the longest."""

from __future__ import annotations

import numpy as np
import paddle

from paddle_tfm.testing.adapters.layers import OrdinaryEncoding
from paddle_tfm.testing.hook_outputs import accepted_length, begin_again, checked_term, hook_outputs, position_ids
from paddle_tfm.testing.kinds.position import encoding_of, trained
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip
from paddle_tfm.testing.size import MAX_LENGTH
from paddle_tfm.testing.subject import Subject

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
def nearness(subject: Subject) -> Result:
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
    invariant="beyond the trained length the behaviour is clear: finite numbers that do not begin again, or a refusal "
    "in words",
    consequence="a long sentence ends in a crash or in NaN, or its end looks like its beginning",
    hint="indices beyond a table (clip them, and say so; modulo its length they begin again), functions of the "
    "position that overflow",
)
def beyond_length(subject: Subject) -> Result:
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
