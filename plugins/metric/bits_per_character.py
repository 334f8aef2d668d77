"""How many bits the model needs for a character."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from paddle_tfm.protocols import Likelihood, Metric, Prediction


class BitsPerCharacter(Metric):
    """Negative log-likelihood of the references in bits, per character of them, whatever the tokenizer cuts them into.

    Unlike perplexity it does not depend on how long pieces are, so that models with different tokenizers can be
    compared, if each can spell all of the text: an unknown piece is cheap. What ends a text is in the sum, but is no
    character.
    """

    higher_is_better: ClassVar[bool] = False
    needs_search: ClassVar[bool] = False

    def compute(self, predictions: Sequence[Prediction], likelihood: Likelihood) -> float:
        if not likelihood.characters > 0:
            raise ValueError(f"`likelihood.characters` must be positive, but is {likelihood.characters}")
        return likelihood.negative_log / math.log(2) / likelihood.characters
