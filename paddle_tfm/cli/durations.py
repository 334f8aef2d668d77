"""Times on the command line: 30m, 1h30m, 500ms, 2."""

from __future__ import annotations

import operator
import re

import click

from paddle_tfm.errors import UserError

SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType):
    """A time in seconds, written 90s, 1h30m, 500ms or, in seconds, 2.

    Args:
        example: what the sentence about another form shows. least, most: the shortest and the longest time, as they
            are written.
    """

    name = "duration"

    def __init__(self, example: str, least: str = "1ms", most: str = "10000h"):
        self.example, self.least, self.most = example, least, most

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> float:
        """The seconds that `value` says."""
        option = parameter.opts[0] if parameter is not None else "a time"
        seconds = _seconds(str(value).strip())
        if seconds is None:
            raise UserError(f"{option} {value}: must be a duration, such as {self.example}")
        for bound, word, outside in ((self.least, "least", operator.lt), (self.most, "most", operator.gt)):
            if outside(seconds, _seconds(bound) or 0.0):
                raise UserError(f"{option} {value}: must be a duration of at {word} {bound}, such as {self.example}")
        return seconds


def _seconds(text: str) -> float | None:
    """None where the text is no time."""
    number = r"(\d+(?:\.\d+)?)"
    if re.fullmatch(number, text):
        return float(text)
    if not re.fullmatch(f"({number}(ms|h|m|s))+", text):
        return None
    return sum(float(count) * SECONDS[unit] for count, unit in re.findall(f"{number}(ms|h|m|s)", text))
