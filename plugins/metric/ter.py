"""Edits and shifts from the output to the reference."""

from __future__ import annotations

from typing import ClassVar

from sacrebleu.metrics import TER

from paddle_tfm.language import _
from paddle_tfm_plugins.metric._edits import edit_distance
from paddle_tfm_plugins.metric._sacrebleu import SacreBLEU

LONGEST = 200  # words of texts between which shifts are searched: the search takes seconds there, and an hour for 3,000


class _Scorer(TER):
    """sacreBLEU's, which searches no shifts in long texts."""

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict) -> list[float]:
        words, references = hypothesis.split(), ref_kwargs["ref_words"]
        if max(map(len, [words, *references])) <= LONGEST:
            return super()._compute_segment_statistics(hypothesis, ref_kwargs)
        edits = min(edit_distance(words, reference) for reference in references)
        return [edits, sum(map(len, references)) / len(references)]


class Ter(SacreBLEU):
    """Translation edit rate of the corpus, as sacreBLEU computes it: 100 · edits / words of the references.

    An edit inserts, deletes or substitutes a word, or shifts a run of words (Snover et al., 2006,
    aclanthology.org/2006.amta-papers.25). The lower the better; it may exceed 100. The defaults are sacreBLEU's, which
    fold case.

    Of several references the one with the fewest edits counts, and the mean of their words.

    Shifts take a search whose time has no bound in long texts: where one of a pair has more than 200 words there are
    none, and the edits, those of `word_error_rate`, are at least as many as with shifts. The signature says it.

    Args:
        case_sensitive: distinguish capitals. normalized: set punctuation apart. no_punct: take punctuation away.
        asian_support: cut Chinese and Japanese into characters; needs `normalized` or `no_punct`.
    Raises:
        ValueError: `asian_support` stands alone: it would change nothing.
    """

    higher_is_better: ClassVar[bool] = False

    def __init__(
        self,
        case_sensitive: bool = False,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
    ):
        if asian_support and not (normalized or no_punct):
            raise ValueError(_("`asian_support` needs `normalized` or `no_punct`: alone it changes nothing"))
        super().__init__(
            _Scorer(
                case_sensitive=case_sensitive,
                normalized=normalized,
                no_punct=no_punct,
                asian_support=asian_support,
            )
        )

    def signature(self, references: int = 1) -> str:
        return f"{super().signature(references)}|shifts:to-{LONGEST}-words"
