"""BLEU of lower-cased texts as Moses cuts them: what papers on Multi30k print."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Literal

import numpy as np
from sacrebleu.metrics import BLEU

from paddle_tfm.language import _
from paddle_tfm.protocols import Prediction
from paddle_tfm_plugins.metric._sacrebleu import SacreBLEU

LANGUAGES = Literal["cs", "de", "en", "fr"]


class MosesBleu(SacreBLEU):
    """BLEU of the corpus from 0 to 100 over lower-cased words as Moses cuts them: what most papers on Multi30k print.

    It is the score of `multi-bleu.perl` on tokenized files, and of `fairseq-generate --remove-bpe` on data prepared so
    (Wu et al. 2021, arXiv:2105.14462, among others). Output and reference go through normalize-punctuation,
    lower-casing and tokenizer.perl, in this order, with the options of their `language` (by the package sacremoses,
    which must be installed); BLEU is counted over the words between spaces, as in `bleu` but without smoothing. It is
    no number to stand beside `bleu` of detokenized texts.

    Args:
        language: of the target: cs | de | en | fr.
    Raises:
        ValueError: the package `sacremoses` is not installed.
    """

    def __init__(self, language: LANGUAGES = "de"):
        if find_spec("sacremoses") is None:
            raise ValueError(_("the metric needs the package sacremoses: pip install sacremoses"))
        from sacremoses import MosesPunctNormalizer, MosesTokenizer  # an optional dependency

        self.language = language
        self.normalizer, self.tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
        super().__init__(BLEU(tokenize="none", smooth_method="none", force=True))

    def words(self, text: str) -> str:
        """The text's lower-cased words and punctuation marks, between spaces."""
        # Moses' script reads a line with its end, on which its rule for quotation marks after a full stop depends.
        normal = self.normalizer.normalize(text + "\n")
        return self.tokenizer.tokenize(normal.lower(), return_str=True)

    def statistics(self, predictions: Sequence[Prediction]) -> np.ndarray:
        return super().statistics(
            [
                Prediction(each.source, reference, self.words(each.hypothesis), others=others)
                for each in predictions
                for reference, *others in [map(self.words, each.references)]
            ]
        )

    def signature(self, references: int = 1) -> str:
        return (
            f"{super().signature(references)}|moses:{self.language},normalized,lower|sacremoses:{version('sacremoses')}"
        )
