"""The colour of a variant, wherever it is shown: terminal, page, figures, VisualDL."""

from __future__ import annotations

# Told apart by colour-blind readers, and readable on white and on black: the contrast to either is 3.2 or more (WCAG
# 1.4.11 wants 3). To eyes with all cones, and to those that lack one kind (Machado and others, 2009), the least
# difference of two is 10.7 by CIEDE2000, and of the first four 16.7.
COLOURS = ("#3861ff", "#ff261c", "#bf208d", "#12a081", "#4e8b1d", "#6b6a67", "#9f80b9", "#9b725e")


def colour(number: int) -> str:
    """The colour of the variant of this number (`comparison.runs.numbered`); from the ninth on they come again, where a
    figure has other lines and markers."""
    return COLOURS[number % len(COLOURS)]
