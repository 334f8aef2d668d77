"""Character n-grams that output and reference share."""

from __future__ import annotations

from sacrebleu.metrics import CHRF

from paddle_tfm.validators import at_least, not_negative
from paddle_tfm_plugins.metric._sacrebleu import SacreBLEU


class Chrf(SacreBLEU):
    """chrF of the corpus from 0 to 100, as sacreBLEU computes it; with `word_order: 2` it is chrF++.

    chrF = 100 · (1 + β²) P R / (β² P + R), where P and R are the means over the orders of the share of n-grams of the
    outputs that are in their reference, and the reverse (Popović 2015, aclanthology.org/W15-3049; chrF++: 2017,
    aclanthology.org/W17-4770). White space does not count; it needs no words, and so suits every writing.

    Args:
        char_order, word_order: the longest n-grams of characters, and of words. beta: weighs recall β times as much.
        lowercase: fold case first.
    Raises:
        ValueError: `char_order` or `beta` is below 1, or `word_order` below 0.
    """

    def __init__(self, char_order: int = 6, word_order: int = 0, beta: int = 2, lowercase: bool = False):
        at_least(1, char_order=char_order, beta=beta)
        not_negative(word_order=word_order)
        super().__init__(CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase))
