"""Checks of options that many constructors need. Each raises ValueError with a sentence: what must hold, and what the
value is.

Options are keywords, several at once: ``positive(eps=eps, base=base)``. None, an option that is left out, passes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import pairwise

from paddle_tfm.errors import nearest
from paddle_tfm.language import _

WIDEST = 65_536  # of one side of a matrix


def positive(**options: float | None) -> None:
    """Raises ValueError unless each option is above 0."""
    for name, value in options.items():
        _require(value is None or value > 0, name, _("must be positive"), value)


def not_negative(**options: float | None) -> None:
    """Raises ValueError unless each option is at least 0."""
    for name, value in options.items():
        _require(value is None or value >= 0, name, _("must not be negative"), value)


def at_least(lowest: float, **options: float | None) -> None:
    """Raises ValueError unless each option is at least `lowest`."""
    for name, value in options.items():
        _require(value is None or value >= lowest, name, _("must be at least {number}").format(number=lowest), value)


def matrix_side(**options: int | None) -> None:
    """Raises ValueError unless each option, one side of a matrix, is from 1 to `WIDEST`."""
    at_least(1, **options)
    for name, value in options.items():
        _require(value is None or value <= WIDEST, name, _("must be at most {number}").format(number=WIDEST), value)


def between(interval: str, **options: float | None) -> None:
    """Raises ValueError unless each option is in `interval`, written as in mathematics: "[0, 1)" is 0 ≤ x < 1."""
    low, high = (float(bound) for bound in interval[1:-1].split(","))
    above, below = (
        operator.le if interval[0] == "[" else operator.lt,
        operator.le if interval[-1] == "]" else operator.lt,
    )
    for name, value in options.items():
        inside = value is None or (above(low, value) and below(value, high))
        _require(inside, name, _("must be in {interval}").format(interval=interval), value)


def one_of(known: Iterable[str], **options: str | None) -> None:
    """Raises ValueError unless each option is one of `known`; the sentence names the nearest."""
    known = list(known)
    shown = ", ".join(known) if len(known) <= 20 else f"{', '.join(known[:10])}, …"
    for name, value in options.items():
        if value is not None and value not in known:
            text = _("`{name}` must be one of {known}, but is '{value}'{hint}")
            raise ValueError(text.format(name=name, known=shown, value=value, hint=nearest(value, known)))


def ascending(**options: float) -> None:
    """Raises ValueError unless no option is above the next."""
    for (name, value), (above, limit) in pairwise(options.items()):
        if not value <= limit:
            text = _("`{name}` must not be above `{above}`, but {value} is above {limit}")
            raise ValueError(text.format(name=name, above=above, value=value, limit=limit))


def divides(**options: int) -> None:
    """Raises ValueError unless each option, a positive integer, divides the next."""
    for (name, divisor), (of, number) in pairwise(options.items()):
        if number % divisor:
            text = _("`{name}` must divide `{of}`, but {divisor} does not divide {number}")
            raise ValueError(text.format(name=name, of=of, divisor=divisor, number=number))


def _require(holds: bool, name: str, sentence: str, value: object) -> None:
    if not holds:
        raise ValueError(_("`{name}` {rule}, but is {value}").format(name=name, rule=sentence, value=value))
