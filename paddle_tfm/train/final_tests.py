"""The tests of a finished training: the run's own, and the further ones that its recipe names (`evaluate.tests`). All
are of the best checkpoint, which the validation split chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from paddle_tfm.data.codec import Encoded
from paddle_tfm.predictions import predictions_file, write_predictions
from paddle_tfm.protocols import Prediction
from paddle_tfm.recipe.further_tests import FurtherTest
from paddle_tfm.train.evaluate import DecodingTime, log_probs
from paddle_tfm.train.run import Run


class Score(Protocol):
    """Scores of examples with the search of the end, and what it wrote."""

    def __call__(
        self, examples: Sequence[Encoded], searched: Sequence[Encoded], **conditions: Any
    ) -> tuple[dict[str, float], list[Prediction]]:
        """`conditions`: `max_rows` and `padding` of `evaluate.likelihood`; `clock`: a `DecodingTime`."""


@dataclass
class FinalTests:
    """Scores on the test split, empty without one; how long its search took; and name → what `results.json` holds of
    each further test."""

    run: Run
    score: Score
    test: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    decoding: DecodingTime = field(default_factory=DecodingTime)
    _usual: dict[str, list[Prediction]] = field(default_factory=dict)  # split → what is written in usual batches

    def do(self) -> FinalTests:
        """All of them, predictions written beside the run's results."""
        run = self.run
        if examples := run.encoded["test"]:
            self.test, self._usual["test"] = self.score(examples, examples, clock=self.decoding)
            write_predictions(predictions_file(run.folder), self._usual["test"])
        for name, test in run.settings.evaluate.tests.items():
            self.tests[name] = self._further(name, test)
        return self

    def _further(self, name: str, test: FurtherTest) -> dict[str, Any]:
        run, split, conditions = self.run, test.texts(name), conditions_of(test)
        examples = run.encoded[split]
        scores, predictions = self.score(examples, examples, **conditions)
        write_predictions(predictions_file(run.folder, test=name), predictions)
        facts = {"texts": split, "data": run.fingerprint[split], "examples": len(examples), **conditions}
        if split in run.in_training:
            facts["in_training"] = run.in_training[split]
        if test.is_conditioned:
            facts["drift"] = drift(run, examples, conditions)
            facts["changed_outputs"] = changed(self._in_usual_batches(split), predictions)
        return {**facts, "scores": scores}

    def _in_usual_batches(self, split: str) -> list[Prediction]:
        if split not in self._usual:
            examples = self.run.encoded[split]
            self._usual[split] = self.score(examples, examples)[1]
        return self._usual[split]


def conditions_of(test: FurtherTest) -> dict[str, Any]:
    """In what batches a test is scored."""
    return {"max_rows": test.batch, "padding": test.padding}


def drift(run: Run, examples: Sequence[Encoded], conditions: Mapping[str, Any]) -> float:
    """The largest change of a reference's log-probability under teacher forcing, in nats, between batches as usual and
    under these conditions. Of a correct model it is rounding."""
    usual, other = log_probs(run.model, examples), log_probs(run.model, examples, **conditions)
    return max(map(_distance, usual, other), default=0.0)


def _distance(one: float, other: float) -> float:
    return 0.0 if one == other else abs(one - other)  # of two infinite ones too


def changed(usual: Sequence[Prediction], other: Sequence[Prediction]) -> int:
    """How many outputs are others; none where no metric asks for outputs."""
    return sum(one.hypothesis != two.hypothesis for one, two in zip(usual, other, strict=True))
