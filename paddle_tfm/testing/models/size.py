"""The sizes of the small models that a component is checked in."""

from __future__ import annotations

from dataclasses import dataclass

VOCABULARY, FIRST_WORD, MAX_LENGTH = 13, 4, 96


@dataclass(frozen=True)
class Size:
    """A small model, and the lengths of the sentences that go through it."""

    d_model: int
    num_heads: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    source_lengths: tuple[int, ...]
    target_lengths: tuple[int, ...]


USUAL = Size(16, 2, 24, 2, 2, (5, 3, 4), (4, 6, 2))
ODD = Size(24, 3, 20, 1, 3, (7, 1, 3), (1, 5, 9))
ONE_SENTENCE = Size(8, 1, 12, 2, 1, (3,), (5,))
ONE_LAYER = Size(16, 2, 24, 1, 1, (5, 3, 4), (4, 6, 2))
ALL_ALIKE = Size(16, 4, 24, 1, 1, (4, 2, 4, 3), (4, 3, 2, 4))  # B = T = S = H = width of a head
LONG_TEXT = Size(16, 2, 24, 1, 1, (70, 4), (3, 72))  # longer than a table or a mask of 32 or 64 reaches
