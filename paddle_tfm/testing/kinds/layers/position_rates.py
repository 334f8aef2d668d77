"""What holds for the rates of rotations and sinusoids, whose `base` can be set."""

from __future__ import annotations

import math

import numpy as np

from paddle_tfm.errors import UserError
from paddle_tfm.testing.kinds.layers.position import encoding_of
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import hook_outputs, position_ids
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Result, Skip

NAMES = ("base", "theta", "rope_theta", "rope_base", "rotary_base", "max_wavelength")
BASES = (4.0, 8.0)  # with so small ones all channels move within a few positions
POSITIONS = range(1, 25)
IS_WAVE, MOVES, OFF = 1e-4, 1e-2, 0.02  # of its height; of an exponent


@check(
    "position",
    invariant="with a `base`, rates go down from 1 to about 1 / base, evenly in powers of it",
    consequence="the longest wavelength is another than the recipe says: far words look alike, or all words look near",
    hint="base ** (-2i / D) for pair i of D / 2: whether i counts pairs or channels, the factor 2, which D",
)
def rates(subject: ComponentUnderTest) -> Result:
    name = next((name for name in NAMES if subject.takes(name)), "")
    if not name:
        return Skip("it has no `base`")
    try:
        one, other = (_rates(subject.with_options({name: base})) for base in BASES)
    except UserError as error:
        return Skip(str(error))
    notes = []
    for hook in sorted(one.keys() & other.keys()):
        both = np.isfinite(one[hook]) & np.isfinite(other[hook])
        exponents = np.log(one[hook][both] / other[hook][both]) / math.log(BASES[1] / BASES[0])
        exponents.sort()
        gaps = np.diff(exponents)
        gaps = gaps[gaps > OFF]
        steps = len(gaps)  # between as many rates and one more
        if steps < 2:
            continue
        if np.ptp(gaps) > OFF:
            notes.append(f"{hook}: {steps + 1} rates, in uneven powers of {name}")
            continue
        first, last = exponents[0], exponents[-1]
        least = 2 * steps / one[hook].shape[-1]  # i / (D / 2), where all pairs turn
        if abs(first) > OFF:
            return Failed(f"{hook}: the fastest rate goes with {name}^{-first:.2g}, and not with none of its powers")
        if not least - OFF < last < 1 + OFF:
            expected = f"{name}^{-least:.2g} to {name}^-1"
            return Failed(f"{hook}: the slowest of {steps + 1} rates goes with {name}^{-last:.2g}, not with {expected}")
        notes.append(f"{hook}: {steps + 1} rates, the slowest goes with {name}^{-last:.2g}")
    return Note("; ".join(notes)) if notes else Skip("it makes no waves of several rates")


def _rates(subject: ComponentUnderTest) -> dict[str, np.ndarray]:
    """Hook → the rate of each channel [H, D] or [C], NaN for one that is no wave: v(p + 1) + v(p − 1) = 2 cos(rate)
    v(p). Of steps from position to position, in which what a vector has besides is gone."""
    outputs = hook_outputs(encoding_of(subject), position_ids(*POSITIONS), position_ids(*POSITIONS))
    rates_of_channels = {}
    for hook in outputs.keys() & {"embed", "query", "key"}:
        rows = np.diff(outputs[hook].reshape(len(POSITIONS), -1).astype("float64"), axis=0)
        inner, beside = rows[1:-1], rows[2:] + rows[:-2]
        slopes = (inner * beside).sum(0) / np.maximum((inner * inner).sum(0), 1e-30)
        height = np.abs(rows).max(0)
        is_wave = (height > MOVES) & (np.abs(beside - slopes * inner).max(0) < IS_WAVE * np.maximum(height, 1e-30))
        rates = np.where(is_wave, np.arccos(np.clip(slopes / 2, -1, 1)), np.nan)
        rates_of_channels[hook] = rates.reshape(outputs[hook].shape[1:])
    return rates_of_channels
