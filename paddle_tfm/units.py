"""How a number is written wherever people read it: terminal, progress, report, figures.

A metric declares its unit (`Metric.unit`), `results.json` holds it, and whoever shows the number writes it with this.
A number with a known uncertainty is written to the digit that this allows (`decimals`), one without to a fixed digit.
`visible` shows a text's control characters, and `in_shell` writes a path into a command.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from paddle_tfm.language import _

UNITS = {
    "": "a plain number: 12.346, 0.00123",
    "%": "a share of 1, shown times 100: 0.997 as 99.7%; differences are in percentage points",
    "points": "a score that is on a scale of 0 to 100 by itself: 34.21",
}
MAX_DECIMALS = 6
HUGE = 1e6  # from here on three digits and a power of ten: a loss that explodes has twelve digits that say nothing
AT = "@"  # between a metric and the further test (`evaluate.tests`) that it is of


def metric_name(name: str) -> str:
    """A metric's name in words: `exact match`; that of a further test stays beside it, `exact match@beyond`."""
    metric, at, test = name.partition(AT)
    return f"{metric.replace('_', ' ')}{at}{test}"


def metric_and_test(name: str) -> tuple[str, str]:
    """`exact_match@beyond` as ("exact_match", "beyond"); a metric of a run's own test with "" for it."""
    metric, _, test = name.partition(AT)
    return metric, test


def bounds(unit: str, higher_is_better: bool) -> tuple[float, float]:
    """Between which values a metric of this unit lies. An error rate is a share that may exceed 1."""
    if unit == "":
        return -math.inf, math.inf
    return 0.0, (1.0 if unit == "%" else 100.0) if higher_is_better else math.inf


def decimals(uncertainty: float | None, unit: str = "") -> int | None:
    """How many decimals a number deserves whose uncertainty (a standard deviation, half of an interval) is this: the
    uncertainty keeps one significant digit, or two where the first is a 1, and the number ends where it ends. None
    where the uncertainty says nothing: there is none, or it is 0.

    Whole numbers stay whole: 72 ± 28, and not 70 ± 30.
    """
    if uncertainty is None or not math.isfinite(uncertainty) or uncertainty <= 0:
        return None
    exponent = math.floor(math.log10(uncertainty * _scale(unit)))
    leading = round(uncertainty * _scale(unit) / 10.0**exponent, 1)
    if leading >= 9.5:  # written with one digit it is a 10 of the next place
        exponent, leading = exponent + 1, 1.0
    digits = -exponent + (1 if leading < 2 else 0)
    return max(0, digits) if digits <= MAX_DECIMALS else None


def text(value: float | None, unit: str = "", uncertainty: float | None = None) -> str:
    """A value with its unit, to the digit that its `uncertainty` allows; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return _number(value, unit, uncertainty=uncertainty) + ("%" if unit == "%" else "")


def signed(value: float, unit: str = "", uncertainty: float | None = None) -> str:
    """A difference or the end of an interval, with its sign and without its unit: `+1.2`, `−0.013`."""
    return _number(value, unit, "+", uncertainty).replace("-", "−")


def difference(value: float, unit: str = "", uncertainty: float | None = None) -> str:
    """A difference with its sign and its unit: `+1.2 points` between shares, `+0.31` between scores."""
    number = signed(value, unit, uncertainty)
    return _("{number} points").format(number=number) if unit == "%" else number


def plus_minus(mean: float | None, spread: float | None, unit: str = "") -> str:
    """`mean ± spread`, both to the digit that the spread allows: `99.7% ± 0.3`; the mean alone where there is no
    spread."""
    centre = text(mean, unit, spread)
    if spread is None:
        return centre
    digits = centre.removesuffix("%").partition(".")[2]
    if not digits.isdigit() and ("e" in centre or decimals(spread, unit) != 0):  # 1.2e-05, or a dash
        return f"{centre} ± {text(spread, unit)}"
    return f"{centre} ± {spread * _scale(unit):.{len(digits)}f}"


def tick(value: float, unit: str = "", digits: int = 6) -> str:
    """A number at the axis of a figure, no longer than it must be: `99.5%`, `20`."""
    return f"{value * _scale(unit):.{digits}g}" + ("%" if unit == "%" else "")


def signed_tick(value: float, unit: str = "", digits: int = 6) -> str:
    """The same of a difference, with its sign and without its unit: `+0.25`, `−2`, `0`."""
    return f"{value * _scale(unit):{'+' if value else ''}.{digits}g}".replace("-", "−")


def stored(value: float, unit: str = "") -> float:
    """A difference as people write it, in points for a share, as results hold it: 0.5 → 0.005."""
    return value / _scale(unit)


def _scale(unit: str) -> int:
    return 100 if unit == "%" else 1


def _share_decimals(share: float) -> int:
    """One, or as many as keep a share that is not all or nothing from looking so: 99.97%, 0.03%."""
    rest = 100 * min(share, 1 - share)
    return min(MAX_DECIMALS, max(1, math.ceil(-math.log10(rest)))) if rest > 0 else 1


def _number(value: float, unit: str, sign: str = "", uncertainty: float | None = None) -> str:
    places = decimals(uncertainty, unit)
    if HUGE <= abs(_scale(unit) * value) < math.inf and (places is None or abs(value) < 1000 * (uncertainty or 0.0)):
        return f"{_scale(unit) * value:{sign}.3g}"
    if places is not None:
        return f"{_scale(unit) * value:{sign}.{places}f}"
    if unit == "%":
        return f"{100 * value:{sign}.{1 if sign else _share_decimals(value)}f}"
    if unit == "points":
        return f"{value:{sign}.2f}"
    return f"{value:{sign}.3f}" if abs(value) >= 0.1 or value == 0 else f"{value:{sign}.3g}"


def whole_number(text: str, least: int, most: int) -> int | None:
    """The number that `text`, of a flag or an environment variable, writes in the digits 0 to 9; None where it is none
    from `least` to `most`. Python reads other digits as numbers, and refuses to read thousands of them."""
    number = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
    return number if max(least, 0) <= number <= most else None


def listed(words: Iterable[object]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def plural(number: int, what: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


# ESC as ␛, and so on: U+2400 and the 31 after it are pictures of C0, whose TAB and line feed stay; C1 has no pictures.
CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}
CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def visible(text: str) -> str:
    """`text` with its control characters to be seen, so that a corpus, a file's name or a plugin cannot write to the
    terminal what it takes for a command (a colour, a title, an erased line), nor into a page what no XML may hold."""
    return text.translate(CONTROLS)


def in_shell(path: Path) -> str:
    """A path as a word of a command that people copy: quoted where it must be, and no option where it begins with a
    dash."""
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def as_typed(folder: Path) -> Path:
    """A folder as short as the user would type it: from the working folder, where it is in that."""
    folder = folder.resolve()
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def clock(seconds: float) -> str:
    """1:05, or 2:03:09."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
