"""How a number is written wherever people read it: terminal, progress, report, figures.

A metric declares its unit (`Metric.unit`), `results.json` holds it, and whoever shows the number writes it with this.
"""

from __future__ import annotations

import math

UNITS = {
    "": "a plain number: 12.346, 0.00123",
    "%": "a share of 1, shown times 100: 0.997 as 99.7%; differences are in percentage points",
    "points": "a score that is on a scale of 0 to 100 by itself: 34.21",
}


def metric_name(name: str) -> str:
    """A metric's name in words: `exact match`."""
    return name.replace("_", " ")


def text(value: float | None, unit: str = "") -> str:
    """A value with its unit; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return _number(value, unit) + ("%" if unit == "%" else "")


def signed(value: float, unit: str = "") -> str:
    """A difference or the end of an interval, with its sign and without its unit: `+1.2`, `−0.013`."""
    return _number(value, unit, "+").replace("-", "−")


def difference(value: float, unit: str = "") -> str:
    """A difference with its sign and its unit: `+1.2 points` between shares, `+0.31` between scores."""
    return signed(value, unit) + (" points" if unit == "%" else "")


def plus_minus(mean: float | None, spread: float | None, unit: str = "") -> str:
    """`mean ± spread`, both to the same digit: `99.7% ± 0.1`; the mean alone where there is no spread."""
    centre = text(mean, unit)
    if spread is None:
        return centre
    digits = centre.removesuffix("%").partition(".")[2]
    if not digits.isdigit():  # a whole number, 1.2e-05 or a dash
        return f"{centre} ± {text(spread, unit)}"
    return f"{centre} ± {spread * _scale(unit):.{len(digits)}f}"


def tick(value: float, unit: str = "") -> str:
    """A number at the axis of a figure, no longer than it must be: `99.5%`, `20`."""
    return f"{value * _scale(unit):g}" + ("%" if unit == "%" else "")


def _scale(unit: str) -> int:
    return 100 if unit == "%" else 1


def _number(value: float, unit: str, sign: str = "") -> str:
    if unit == "%":
        return f"{100 * value:{sign}.1f}"
    if unit == "points":
        return f"{value:{sign}.2f}"
    return f"{value:{sign}.3f}" if abs(value) >= 0.1 or value == 0 else f"{value:{sign}.3g}"
