"""What a recipe may be at most. A recipe may come from anyone: what nobody would write by hand, and no memory would
hold, is refused with a sentence before it is built."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from paddle_tfm.errors import UserError

BYTES = 1_000_000  # of a recipe's file
DEPTH = 50  # mappings and lists within each other
VALUES = 100_000  # of a recipe, each alias counted as what it stands for
PATH = 1_000  # characters of a dotted path
VALUES_OF_ALL = 10_000_000  # of all variants together
VARIANTS = 10_000  # of a grid, or of lists of values on the command line
RUNS = 100_000  # of all variants at all sizes, under all seeds


def require_size(name: str, size: int) -> None:
    """Raises UserError for a file of too many bytes."""
    if size > BYTES:
        raise UserError(f"{name}: has {size:,} bytes, but a recipe has at most {BYTES:,}; is it a recipe?")


def require_values(name: str, values: int) -> None:
    """Raises UserError for a recipe of too many values."""
    if values > VALUES:
        raise UserError(
            f"{name}: not a recipe: has more than {VALUES:,} values, an alias counted as what it stands for"
        )


def require_path(name: str, line: int, path: str, depth: int = 0) -> None:
    """Raises UserError for a value that lies too deep, by aliases or by the dots of its path, or whose path is too
    long."""
    if max(depth, path.count(".")) > DEPTH:
        raise UserError(f"{_place(name, line)}: nested more than {DEPTH} deep")
    if len(path) > PATH:
        raise UserError(f"{_place(name, line)}: a path of {len(path):,} characters; at most {PATH:,} are read")


def levels(value: object) -> int:
    """How many values stand within each other: 1 for a number, 2 for a list of numbers."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return 1 + max(map(levels, inside), default=0)


def _place(name: str, line: int) -> str:
    return f"{name} line {line}" if line else name


def require_variants(who: str, axes: Iterable[Collection]) -> None:
    """Raises UserError where lists of values would make too many variants: their product."""
    lengths = [len(values) for values in axes]
    if (number := math.prod(lengths)) > VARIANTS:
        product = " × ".join(str(length) for length in lengths)
        raise UserError(f"{who}: would be {product} = {number:,} variants, but at most {VARIANTS:,} are trained")


def require_runs(name: str, variants: int, seeds: int, values: int) -> None:
    """Raises UserError where variants, at all sizes, would be too many runs, or so many copies of a recipe's values
    that no memory holds them."""
    if (number := variants * seeds) > RUNS:
        product = f"{variants:,} variants × {seeds:,} seeds = {number:,} runs"
        raise UserError(f"{name}: would be {product}, but at most {RUNS:,} are trained")
    if variants * values > VALUES_OF_ALL:
        product = f"{variants:,} variants of {values:,} values each"
        raise UserError(f"{name}: would be {product}, but at most {VALUES_OF_ALL:,} are read")
