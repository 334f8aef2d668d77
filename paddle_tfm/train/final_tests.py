"""The tests of a finished training: the run's own, and the further ones that its recipe names (`evaluate.tests`). All
are of the best checkpoint, which the validation split chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from paddle_tfm.data.codec import Encoded
from paddle_tfm.predictions import predictions_file, write_predictions
from paddle_tfm.protocols import Prediction, Search
from paddle_tfm.recipe.further_tests import FurtherTest
from paddle_tfm.train.evaluate import DecodingTime, log_probs
from paddle_tfm.train.run import Run
from paddle_tfm.train.scorer import caveats


class Score(Protocol):
    """Scores of examples, and what a search wrote."""

    def __call__(
        self, examples: Sequence[Encoded], searched: Sequence[Encoded], search: Search | None, **options: Any
    ) -> tuple[dict[str, float], list[Prediction]]:
        """`options`: `max_rows` and `padding` of `evaluate.likelihood`; `clock`: a `DecodingTime`."""


@dataclass
class FinalTests:
    """Scores on the test split, empty without one; how long its search took; name → what `results.json` holds of each
    further test; and what must stand beside all of these scores (`fit.caveats`). `search`: that of the end."""

    run: Run
    score: Score
    search: Search
    test: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    decoding: DecodingTime = field(default_factory=DecodingTime)
    caveats: dict[str, dict[str, Any]] = field(default_factory=dict)
    _usual: dict[tuple[str, int], list[Prediction]] = field(default_factory=dict)  # what is written in usual batches

    def do(self) -> FinalTests:
        """All of them, predictions written beside the run's results."""
        run = self.run
        if run.encoded["test"]:
            self.test, predictions = self._scored("test", "test", clock=self.decoding)
            self._usual["test", run.model.max_length] = predictions
            write_predictions(predictions_file(run.folder), predictions)
        for name, test in run.settings.evaluate.tests.items():
            with run.model.up_to(test.max_length):
                self.tests[name] = self._further(name, test)
        return self

    def _scored(self, label: str, split: str, **options: Any) -> tuple[dict[str, float], list[Prediction]]:
        examples = self.run.encoded[split]
        scores, predictions = self.score(examples, examples, search=self.search, **options)
        self.caveats[label] = caveats(self.run, label, self.search, examples, predictions)
        return scores, predictions

    def _further(self, name: str, test: FurtherTest) -> dict[str, Any]:
        run, split, conditions = self.run, test.texts(name), conditions_of(test)
        examples = run.encoded[split]
        scores, predictions = self._scored(test.label(name), split, **conditions)
        write_predictions(predictions_file(run.folder, test=name), predictions)
        facts = {"texts": split, "data": run.fingerprint[split], "examples": len(examples), **conditions}
        if test.max_length:
            facts["max_length"] = test.max_length
        if test.is_conditioned:
            facts["drift"] = drift(run, examples, conditions)
            facts["changed_outputs"] = changed(self._in_usual_batches(split), predictions)
        return {**facts, "scores": scores}

    def _in_usual_batches(self, split: str) -> list[Prediction]:
        key, examples = (split, self.run.model.max_length), self.run.encoded[split]
        if key not in self._usual:
            self._usual[key] = self.score(examples, examples, search=self.search)[1]
        return self._usual[key]


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
