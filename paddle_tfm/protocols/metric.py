"""A number that says how good predictions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from paddle_tfm.protocols.component import Component
from paddle_tfm.units import UNITS


class Prediction(NamedTuple):
    """One translated example. Texts are what people read, white space squeezed; `reference` is the corpus' own, with
    its case and rare characters. Pieces are the tokenizer's; texts that come from a file have none. `others` are
    references beside the first, as many in each prediction of a split."""

    source: str
    reference: str
    hypothesis: str
    reference_pieces: tuple[str, ...] = ()
    hypothesis_pieces: tuple[str, ...] = ()
    score: float = 0.0
    others: tuple[str, ...] = ()

    @property
    def references(self) -> tuple[str, ...]:
        return (self.reference, *self.others)


class Likelihood(NamedTuple):
    """Sums over the real target tokens of a split under teacher forcing, and the references' number of characters."""

    negative_log: float
    correct: int
    tokens: int
    characters: int = 0


NO_LIKELIHOOD = Likelihood(0.0, 0, 0)  # of texts that came without a model


class Metric(Component):
    """A number about predictions. Write `statistics` and `value` where it is a function of sums over predictions, on
    which resampling a test set works. Otherwise write `compute`.

    Invariances: the order of predictions does not matter; nothing is better than the reference, longer output neither.
    Raises: ValueError in the constructor, where an option is out of range, and where there is nothing to measure.

    Example::

        import numpy as np
        from paddle_tfm.protocols import Metric
        from paddle_tfm.validators import positive

        class LengthError(Metric):  # Σ |words of output − words of reference| / Σ words of reference
            higher_is_better = False
            def statistics(self, predictions):
                lengths = [(len(p.hypothesis.split()), len(p.reference.split())) for p in predictions]
                return np.array([(abs(ours - theirs), theirs) for ours, theirs in lengths], float)
            def value(self, total):
                positive(words_of_references=total[1])
                return total[0] / total[1]
    """

    kind: ClassVar[str] = "metric"
    higher_is_better: ClassVar[bool] = True
    needs_search: ClassVar[bool] = True  # False: the likelihood is enough (perplexity)
    needs_pieces: ClassVar[bool] = False  # True: texts are not enough, so that it cannot score a file of them
    several_references: ClassVar[bool] = False  # True: it takes all `references`; else the first, which is said
    per_piece: ClassVar[bool] = False  # True: who cuts texts into other pieces gets another number, nothing to compare
    unit: ClassVar[Literal["", "%", "points"]] = ""  # "%": 0.997 is shown as 99.7%; "points": 0 to 100 by itself, 34.21

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.unit not in UNITS:
            units = ", ".join(map(repr, UNITS))
            raise ValueError(f"`unit` of the metric {cls.__name__} must be one of {units}, but is {cls.unit!r}")

    def statistics(self, predictions: Sequence[Prediction]) -> np.ndarray:
        """What is summed: float64 [N, K], a row for each prediction, which depends on that prediction alone."""
        raise NotImplementedError

    def value(self, total: np.ndarray) -> float:
        """The metric from the sum [K] of the rows. Raises ValueError: there was nothing to measure."""
        raise NotImplementedError

    def compute(self, predictions: Sequence[Prediction], likelihood: Likelihood) -> float:
        """The metric of `predictions`, or of `likelihood`. Default: value(Σ statistics). Raises as `value`."""
        if not predictions:
            raise ValueError("`predictions` must hold at least one")
        return self.value(self.statistics(predictions).sum(0))

    def signature(self, references: int = 1) -> str:
        """What must stand beside the number for others to compare with it (version, tokenization); else "". Default:
        how many of the `references` that each text has are taken, where it has several."""
        taken = "" if self.several_references else "1-of-"
        return f"nrefs:{taken}{references}" if references > 1 else ""
