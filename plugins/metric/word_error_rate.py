"""Edits from the output's words to the reference's."""

from __future__ import annotations

from typing import Literal

from paddle_tfm.protocols import Prediction
from paddle_tfm_plugins.metric._edits import ErrorRate, Items


class WordErrorRate(ErrorRate):
    """Insertions, deletions and substitutions of words that mend the outputs, per word of the references; may exceed 1.

    Words stand between spaces, as they are: case and punctuation count.

    Args:
        per: `line` takes each output as one word: the share of outputs that are not exactly right, which is the word
            error rate of the SIGMORPHON tasks of pronunciation (Gorman et al., 2020,
            aclanthology.org/2020.sigmorphon-1.2), where an output is a word's phonemes.
    """

    def __init__(self, per: Literal["word", "line"] = "word"):
        self.item = per

    def items(self, prediction: Prediction) -> tuple[Items, Items]:
        words = prediction.hypothesis.split(), prediction.reference.split()
        return words if self.item == "word" else tuple((tuple(each),) for each in words)
