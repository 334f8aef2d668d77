"""The scores of a run's model while it is trained, and when it ends."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from paddle_tfm.caveats import repetition
from paddle_tfm.data.codec import Encoded, EncodedTexts
from paddle_tfm.protocols import Prediction, Search
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train.evaluate import DecodingTime, likelihood, predict, score
from paddle_tfm.train.fit import reach_of
from paddle_tfm.train.run import Run
from paddle_tfm.units import AT


class Scorer:
    """Scores a model with the metrics of its recipe. Call it with the examples whose likelihood counts, and with those
    that are searched: it returns the metrics, and the outputs of the search.

    Args:
        run: whose model it is.
        pause: called whenever a search has written some outputs, with their number; it may raise.
    """

    def __init__(self, run: Run, pause: Callable[[int], None]):
        self.run, self.pause = run, pause
        self.metrics = run.metrics()
        self.search: Search = run.plan.components["evaluate.search"].build()  # that of the end is `run.search()`

    def __call__(
        self,
        examples: Sequence[Encoded],
        searched: Sequence[Encoded],
        search: Search | None = None,
        clock: DecodingTime | None = None,
        **conditions: Any,
    ) -> tuple[dict[str, float], list[Prediction]]:
        """`search`: another than that of evaluations. `clock`: gets its time. `conditions`: `max_rows` and `padding` of
        `likelihood`."""
        run, predictions = self.run, []
        log_likelihood = likelihood(run.model, examples, **conditions)
        if any(metric.needs_search for metric in self.metrics.values()):
            decode: Callable[..., Any] = functools.partial(decode_all, run.model, **conditions)
            decode = clock.of(decode) if clock else decode
            search = search or self.search
            predictions = predict(run.model, run.codec, searched, search, progress=self.pause, decode=decode)
        return score(self.metrics, predictions, log_likelihood), predictions

    def valid(self) -> tuple[dict[str, float], list[Prediction]]:
        """The scores of the validation split, and the outputs of its first `evaluate.examples`."""
        examples = self.run.encoded["valid"]
        return self(examples, examples[: self.run.settings.evaluate.examples])

    def caveats(self, predictions: Sequence[Prediction]) -> dict[str, dict[str, Any]]:
        """What must stand beside the scores of the validation split, of which these are the outputs."""
        searched = self.run.encoded["valid"][: self.run.settings.evaluate.examples]
        return caveats(self.run, "valid", self.search, searched, predictions)

    def rank(self, metrics: Mapping[str, float]) -> list[float]:
        """The rank of an evaluation, higher is better: the metric `evaluate.best`, then the loss."""
        name = self.run.settings.evaluate.best
        higher = name != "loss" and self.metrics[name].higher_is_better
        ranks = [metrics[name] if higher else -metrics[name], -metrics["loss"]]
        return [rank if math.isfinite(rank) else -math.inf for rank in ranks]


def caveats(
    run: Run, label: str, search: Search, examples: EncodedTexts, predictions: Sequence[Prediction]
) -> dict[str, dict[str, Any]]:
    """What must stand beside the scores of examples. `label`: what they are of, a split or `test@name`. `predictions`:
    none where no metric needs them."""
    searched = search if predictions and run.model.decoder is not None else None
    reach = reach_of(run.model.max_length, searched, examples, predictions)
    counted: dict[str, dict[str, Any]] = {"reach": asdict(reach)}
    if label in run.in_training:
        counted["in_training"] = run.in_training[label]
    if predictions and AT not in label:  # past the trained length a sound model may repeat itself too
        texts = [(each.hypothesis, each.reference) for each in predictions]
        pieces = [(each.hypothesis_pieces, each.reference_pieces) for each in predictions]
        counted["repetition"] = repetition(texts, pieces)
    return counted
