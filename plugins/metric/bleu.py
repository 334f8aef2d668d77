"""N-grams of the output that the reference has too."""

from __future__ import annotations

from sacrebleu.metrics import BLEU

from paddle_tfm.language import _
from paddle_tfm.validators import one_of
from paddle_tfm_plugins.metric._sacrebleu import SacreBLEU

TOKENIZERS = ("13a", "char", "intl", "none", "zh")
NEED_MORE = frozenset(BLEU.TOKENIZERS) - frozenset(TOKENIZERS)
SMOOTHINGS = ("add-k", "exp", "floor", "none")


class Bleu(SacreBLEU):
    """BLEU of the corpus from 0 to 100, as sacreBLEU computes it (arXiv:1804.08771): the score that papers print.

    BLEU = 100 · BP · (p₁ p₂ p₃ p₄)^(1/4), where pₙ is the share of the outputs' n-grams that their reference has, each
    as often as there, and BP = min(1, exp(1 − r/c)) for c words in the outputs and r in the references (Papineni et
    al., 2002, aclanthology.org/P02-1040). Outputs and references are detokenized; sacreBLEU cuts both in its own way.

    Args:
        tokenize: 13a (as WMT) | zh (Chinese by character) | intl | char | none. lowercase: fold case first.
        smooth: what stands for a pₙ of 0: exp | floor | add-k | none. effective_order: leave out orders that no output
            is long enough for; only for a corpus of very short outputs.
    Raises:
        ValueError: `tokenize` or `smooth` is unknown, or `tokenize` needs what is not installed.
    """

    def __init__(
        self, tokenize: str = "13a", lowercase: bool = False, smooth: str = "exp", effective_order: bool = False
    ):
        if tokenize in NEED_MORE:
            text = _("`tokenize` {tokenize!r} needs a download or another package; use one of {known}")
            raise ValueError(text.format(tokenize=tokenize, known=", ".join(TOKENIZERS)))
        one_of(TOKENIZERS, tokenize=tokenize)
        one_of(SMOOTHINGS, smooth=smooth)
        super().__init__(
            BLEU(
                tokenize=tokenize,
                lowercase=lowercase,
                smooth_method=smooth,
                effective_order=effective_order,
                force=True,  # no warning about outputs that end in " ."
            )
        )
