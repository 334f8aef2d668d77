"""What holds for a positional encoding far from the beginning of a text, and for the rates of its waves."""

from __future__ import annotations

import math

import numpy as np

from paddle_tfm.errors import UserError
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.testing.kinds.layers.position import encoding_of
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import (
    EMBEDDED,
    HEAD_DIM,
    HEADS,
    WIDTH,
    begin_again,
    hook_outputs,
    position_ids,
    trained,
)
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import CLOSE, Failed, Note, Passed, Result, Skip, difference, distance

COUNT = 8  # positions in a row
NEAR, AFTER = 11, 29
FAR = (300, 1000, 4000)  # bfloat16 holds every second, … position above 256, float16 above 2,048
TABLES = (128, 256, 512, 1000, 1024, 2000, 2048)  # lengths that people give a table
ROUNDINGS = 32  # of an angle in float32
TURNED = "query and key"
BY_DISTANCE = 0.02  # what products at one distance may differ by, where rounding is why
WAVE = range(1, 13)  # positions at which a channel is seen to be a wave
STANDS_STILL = 1e-5  # below 2, the 2 cos(rate) of a line: what is straight near the beginning may have a bend later
MOVES = 0.05  # of its height, which a channel must move by in these positions to be seen as a wave
IS_WAVE, MAX_OFF = 2e-3, 0.02  # of its height: what rounding leaves, and what is no wave any more


@check(
    "position",
    invariant="at positions 300, 1,000 and 4,000, neighbours still differ, no earlier position returns, distances"
    " act as near the beginning, and waves continue",
    consequence="in long texts neighbouring words share a position, and their order is lost",
    hint="positions clipped to a length that is not `max_length`; positions or angles in bfloat16 or float16, as under "
    "mixed precision: compute them in float32 or float64, and cast what comes out",
)
def far_positions(subject: ComponentUnderTest) -> Result:
    for site in subject.site_names:
        size = {"d_model": WIDTH, "num_heads": HEADS, "head_dim": HEAD_DIM, "max_length": max(FAR) + COUNT}
        encoding = subject.build(subject.site(site), **size)
        encoding.eval()
        trained(encoding)
        declared = "beyond_length" in encoding.expected_failures  # a period, say
        if not declared and (length := _length_of_table(encoding)):
            return Failed(f"{site}: positions {NEAR} … and {NEAR + length} … get the same")
        near, after, waves = _at(encoding, NEAR), _at(encoding, AFTER), _waves(encoding)
        for offset in FAR:
            try:
                far = _at(encoding, offset)
            except Exception:  # beyond its length it may refuse; `beyond_length` sees how
                break
            where = f"positions {offset} … {offset + COUNT - 1}"
            for hook in far.keys() - {"key"}:
                count = _count(far[hook])
                if count < _count(near[hook]) == COUNT:  # a table has rows up to `max_length`, which is farther
                    alike = "all" if count == 1 else "two or more"
                    return Failed(f"{site}: of {where}, {alike} get the same ({hook})")
            for hook, (channels, slopes, height) in waves.items():
                rows = far[hook].reshape(COUNT, -1)[:, channels]
                off = _off_wave(rows, slopes) / np.maximum(
                    height, np.abs(rows).max(0)
                )  # one that grows, as xPos's keys
                if off.size and off.max() > MAX_OFF:
                    channel = int(channels[off.argmax()])
                    return Failed(
                        f"{site}: channel {channel} of {hook} is a wave at positions {WAVE[0]} … {WAVE[-1]}, and at "
                        f"{where} it is off one by {off.max():.2g} of its height"
                    )
            if TURNED in far and distance(near[TURNED], after[TURNED]) <= BY_DISTANCE:
                what = (
                    f"{site}: products of turned queries and keys at positions {NEAR} … {NEAR + COUNT - 1}, and {where}"
                )
                if failed := difference(near[TURNED], far[TURNED], what, max(CLOSE, ROUNDINGS * offset * 2.0**-24)):
                    return failed
    return Passed()


def _length_of_table(encoding: PositionalEncoding) -> int:
    """That of a table which is read from its beginning again; 0 where positions so far apart can be told, or are
    refused."""
    for length in TABLES:
        try:
            if begin_again(encoding, range(NEAR, NEAR + COUNT), range(NEAR + length, NEAR + length + COUNT)):
                return 0 if _continues(encoding, length) else length
        except Exception:  # beyond its length it may refuse; `beyond_length` sees how
            break
    return 0


def _continues(encoding: PositionalEncoding, length: int) -> bool:
    """Whether all that it says are waves, and continue where they begin again: so does what is periodic by design, and
    no table."""
    near, around = _said(encoding, WAVE), _said(encoding, range(length - COUNT // 2, length + COUNT // 2))
    for hook, rows in near.items():
        rows, later = rows.reshape(len(WAVE), -1), around[hook].reshape(COUNT, -1)
        slopes, height = _wave(rows)
        if (_off_wave(rows, slopes) > IS_WAVE * height).any() or (_off_wave(later, slopes) > MAX_OFF * height).any():
            return False
    return True


def _said(encoding: PositionalEncoding, positions: range) -> dict[str, np.ndarray]:
    """What each hook says of positions, which a model asks where they stand (`remap`) before anything else; `embed`
    without the token that it is added to."""
    where = encoding.remap(position_ids(*positions), None)
    outputs = hook_outputs(encoding, where, where)
    if "embed" in outputs:
        outputs["embed"] = outputs["embed"] - EMBEDDED
    return outputs


def _waves(encoding: PositionalEncoding) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Hook → (channels that are waves near the beginning, the 2 cos(rate) of each, its height). A wave is what every
    rotation and every sinusoid is: v(p + 1) + v(p − 1) = 2 cos(rate) v(p)."""
    outputs = _said(encoding, WAVE)
    waves = {}
    for hook in outputs.keys() & {"embed", "query", "key"}:
        rows = outputs[hook].reshape(len(WAVE), -1)
        slopes, height = _wave(rows)
        # What stands still there, as a high bit does, may move later.
        moves = (np.ptp(rows, axis=0) > MOVES * height) & (slopes < 2.0 - STANDS_STILL)
        channels = np.flatnonzero(moves & (_off_wave(rows, slopes) <= IS_WAVE * height))
        waves[hook] = channels, slopes[channels], height[channels]
    return waves


def _wave(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(2 cos(rate), height) of the wave that each column of rows [T, C] is nearest to."""
    rows = rows.astype("float64")
    inner = rows[1:-1]
    slopes = (inner * (rows[2:] + rows[:-2])).sum(0) / np.maximum((inner * inner).sum(0), 1e-30)
    return slopes, np.maximum(np.abs(rows).max(0), 1e-3)


def _off_wave(rows: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """How far columns of rows [T, C] are from waves of these 2 cos(rate) [C]."""
    return np.abs(rows[2:] + rows[:-2] - slopes * rows[1:-1]).max(0)


def _count(rows: np.ndarray) -> int:
    """How many of the rows [T, …] are different, as shares of the largest number: xPos's queries are small far away."""
    shares = rows.reshape(len(rows), -1) / max(float(np.abs(rows).max()), 1e-30)
    return len(np.unique(shares.round(5), axis=0))


def _at(encoding: PositionalEncoding, offset: int) -> dict[str, np.ndarray]:
    """What each hook says of positions in a row; of turned queries and keys the products [T, T, H]."""
    outputs = _said(encoding, range(offset, offset + COUNT))
    if "key" in outputs:  # a vector that is turned by its position says nothing: the angle between two does
        outputs[TURNED] = np.einsum("qhd,khd->qkh", outputs["query"], outputs["key"])
    return outputs


NAMES = ("base", "theta", "rope_theta", "rope_base", "rotary_base", "max_wavelength")
BASES = (4.0, 8.0)  # with so small ones all channels move within a few positions
POSITIONS = range(1, 25)
EXACT, HEIGHT, OFF = 1e-4, 1e-2, 0.02  # of its height; of a wave's steps; of an exponent


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
    """Hook → the rate of each channel [H, D] or [C], NaN for one that is no wave. Of steps from
    position to position, in which what a vector has besides is gone."""
    outputs = hook_outputs(encoding_of(subject), position_ids(*POSITIONS), position_ids(*POSITIONS))
    rates_of_channels = {}
    for hook in outputs.keys() & {"embed", "query", "key"}:
        rows = np.diff(outputs[hook].reshape(len(POSITIONS), -1).astype("float64"), axis=0)
        slopes, height = _wave(rows)
        is_wave = (height > HEIGHT) & (_off_wave(rows, slopes) < EXACT * height)
        rates = np.where(is_wave, np.arccos(np.clip(slopes / 2, -1, 1)), np.nan)
        rates_of_channels[hook] = rates.reshape(outputs[hook].shape[1:])
    return rates_of_channels
