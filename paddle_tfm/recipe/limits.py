"""What a recipe may be at most. A recipe may come from anyone: what nobody would write by hand, and no memory would
hold, is refused with a sentence before it is built."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from paddle_tfm.errors import UserError
from paddle_tfm.language import _

BYTES = 1_000_000  # of a recipe's file
DEPTH = 50  # mappings and lists within each other
VALUES = 100_000  # of a recipe, each alias counted as what it stands for
VARIANTS = 10_000  # of a grid, or of lists of values on the command line


def require_variants(who: str, axes: Iterable[Collection]) -> None:
    """Raises UserError where lists of values would make too many variants: their product."""
    lengths = [len(values) for values in axes]
    if (number := math.prod(lengths)) > VARIANTS:
        product = " × ".join(str(length) for length in lengths)
        text = _("{who}: would be {product} = {number:,} variants, but at most {most:,} are trained")
        raise UserError(text.format(who=who, product=product, number=number, most=VARIANTS))
