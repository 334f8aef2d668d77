"""Edits from the output's phonemes to the reference's."""

from __future__ import annotations

from typing import ClassVar

from paddle_tfm.protocols import Prediction
from paddle_tfm_plugins.metric._edits import ErrorRate, Items


class PhonemeErrorRate(ErrorRate):
    """Insertions, deletions and substitutions of phonemes that mend the outputs, per phoneme of the references.

    Phonemes stand between spaces, as in the SIGMORPHON tasks of pronunciation (Gorman et al., 2020,
    aclanthology.org/2020.sigmorphon-1.2). It may exceed 1.
    """

    item: ClassVar[str] = "phoneme"

    def items(self, prediction: Prediction) -> tuple[Items, Items]:
        return prediction.hypothesis.split(), prediction.reference.split()
