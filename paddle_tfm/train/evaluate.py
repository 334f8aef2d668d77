"""Evaluation of a model: its likelihood under teacher forcing, and metrics of the texts that its search generates; and
the scores of a run, by the metrics of its recipe."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import paddle
from paddle import Tensor

from paddle_tfm import processes
from paddle_tfm.caveats import repetition
from paddle_tfm.data.batches import Batch
from paddle_tfm.data.codec import Codec, Encoded, EncodedTexts
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.predictions import is_right, squeezed
from paddle_tfm.protocols import Hypothesis, Likelihood, Metric, Prediction, Search
from paddle_tfm.protocols.metric import NO_LIKELIHOOD
from paddle_tfm.search.decoding import decode_all, worker_batches
from paddle_tfm.train.fit import reach_of
from paddle_tfm.train.run import Run
from paddle_tfm.units import AT, metric_and_test


def likelihood(
    model: Transformer,
    examples: Sequence[Encoded],
    max_tokens: int = 4096,
    max_rows: int | None = None,
    padding: int = 0,
) -> Likelihood:
    """Under teacher forcing, over the real target tokens: the negative log-likelihood in nats, and how many of the most
    probable tokens are the reference's. `max_rows`: at most so many examples a batch; `padding`: columns of padding
    added to every side. These two change nothing of a correct model."""

    def of_batch(batch: Batch[Tensor]) -> tuple[float, int]:
        log_probs, correct = _teacher_forced(model, batch)
        return -float(log_probs.sum()), correct

    batches = _batches(model, examples, max_tokens, max_rows, padding)
    sums = _map_batches(model, of_batch, batches)
    negative, correct = (sum(of_one[part] for of_one in sums) for part in (0, 1))
    characters = sum(len(encoded.text) for encoded in examples)
    return Likelihood(float(negative), int(correct), sum(batch.tokens for batch in batches), characters)


def _batches(
    model: Transformer, examples: Sequence[Encoded], max_tokens: int, max_rows: int | None, padding: int
) -> list[Batch]:
    """Labels are as many as positions for them, so that those of a model without a decoder are not padded."""
    batches = worker_batches(examples, max_tokens, max_rows)
    return [batch.padded(padding, model.decoder is not None) for batch in batches] if padding else batches


def log_probs(
    model: Transformer,
    examples: Sequence[Encoded],
    max_tokens: int = 4096,
    max_rows: int | None = None,
    padding: int = 0,
    others: Sequence[Transformer] = (),
) -> list[float]:
    """The log-probability of each example's target with its end token, in nats, under teacher forcing; arguments as of
    `likelihood`. `others`: further models of an ensemble, of whose probabilities of each token the mean is taken."""

    def of_batch(batch: Batch[Tensor]) -> Any:
        by_model = [_teacher_forced(each, batch)[0] for each in (model, *others)]  # [B, T] each
        mean = paddle.logsumexp(paddle.stack(by_model), 0) - math.log(len(by_model)) if others else by_model[0]
        return mean.sum(1).tolist()

    batches, sums = _batches(model, examples, max_tokens, max_rows, padding), [0.0] * len(examples)
    by_batch = _map_batches(model, of_batch, batches)
    for batch, scores in zip(batches, by_batch):
        for i, score in zip(batch.index.tolist(), scores):
            sums[i] = score
    return sums


def _map_batches(model: Transformer, function: Callable[[Batch[Tensor]], Any], batches: Sequence[Batch]) -> list[Any]:
    """`function` of each batch, in their order, computed by all workers while the model does not train."""
    training = model.training
    model.eval()
    results = dict(processes.imap_unordered(lambda batch: function(batch.tensors()), batches))
    if training:
        model.train()
    return [results[i] for i in range(len(batches))]


def _teacher_forced(model: Transformer, batch: Batch[Tensor]) -> tuple[Tensor, int]:
    """The log-probability of each target token, float64 [B, T], 0 for padding; and how many are the most probable."""
    with paddle.no_grad(), model.computing("search"):
        h, memory = model(batch)
        log_probs = model.head.log_probs(h, memory)
        target, valid = model.target(batch), batch.target_valid
        scores = log_probs.take_along_axis(target.unsqueeze(-1), -1).squeeze(-1)
        correct = int(paddle.logical_and(log_probs.argmax(-1) == target, valid).astype("int64").sum())
        return (scores * valid.astype(scores.dtype)).astype("float64"), correct


@dataclass
class DecodingTime:
    """How long a search took: the sentences and the tokens that were written, their ends included, and the seconds."""

    sentences: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def of(self, decode: Callable[..., list[list[Hypothesis]]]) -> Callable[..., list[list[Hypothesis]]]:
        """`decode`, whose calls count here."""

        def timed(*arguments: Any, **options: Any) -> list[list[Hypothesis]]:
            before = time.perf_counter()
            decoded = decode(*arguments, **options)
            self.seconds += time.perf_counter() - before
            self.sentences += len(decoded)
            self.tokens += sum(len(hypotheses[0].ids) + 1 for hypotheses in decoded)
            return decoded

        return timed


def predict(
    model: Transformer,
    codec: Codec,
    examples: Sequence[Encoded],
    search: Search,
    max_tokens: int = 4096,
    progress: Callable[[int], None] | None = None,
    decode: Callable[..., list[list[Hypothesis]]] | None = None,
) -> list[Prediction]:
    """The best hypothesis for every example, and its references, as texts whose white space is normalized. `decode`:
    what `decode_all` does for this model, done by another engine."""
    decode = functools.partial(decode_all, model) if decode is None else decode
    decoded = decode(examples, search, max_tokens, progress, wanted=1)
    predictions = []
    for encoded, hypotheses in zip(examples, decoded):
        example, joined = encoded.example, codec.target.joined
        pieces = codec.pieces(hypotheses[0].ids, encoded.extra)
        predictions.append(
            Prediction(
                example.source,
                squeezed(encoded.text),
                squeezed(codec.text(pieces)),
                tuple(codec.target.tokenize(example.target)),
                tuple(pieces),
                hypotheses[0].score,
                tuple(squeezed(joined(text)) for text in example.others),
            )
        )
    return predictions


def score(
    metrics: Mapping[str, Metric], predictions: Sequence[Prediction], likelihood: Likelihood | None
) -> dict[str, float]:
    """The loss (nats per token) and the value of every metric, by name. Without a likelihood there is no loss, and
    `metrics` must be `text_metrics`."""
    values = {} if likelihood is None else {"loss": likelihood.negative_log / max(likelihood.tokens, 1)}
    for name, metric in metrics.items():
        try:
            values[name] = float(metric.compute(predictions, likelihood or NO_LIKELIHOOD))
        except ValueError as error:
            raise UserError(_("metric '{name}': {error}").format(name=name, error=error)) from error
    return values


def text_metrics(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metrics that need texts only, from any system: neither likelihood nor pieces."""
    return {name: metric for name, metric in metrics.items() if metric.needs_search and not metric.needs_pieces}


def signatures(metrics: Mapping[str, Metric], references: int) -> dict[str, str]:
    """The signatures (version and options) of the metrics that have one, to be reported with their values of texts that
    have so many `references`."""
    return {name: signature for name, metric in metrics.items() if (signature := metric.signature(references))}


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
        """The scores of the validation split, and the outputs of its first `evaluate.examples`; with them, as
        `exact_match@own`, those of further tests that are scored `while_training`."""
        run, evaluate = self.run, self.run.settings.evaluate
        examples = run.encoded["valid"]
        scores, predictions = self(examples, examples[: evaluate.examples])
        for name, test in evaluate.tests.items():
            if test.while_training:
                examples = run.encoded[test.texts(name)]
                with run.model.up_to(test.max_length):
                    more, _ = self(examples, examples[: evaluate.examples], **test.conditions)
                scores |= {f"{metric}{AT}{name}": value for metric, value in more.items()}
        return scores, predictions

    def caveats(self, predictions: Sequence[Prediction]) -> dict[str, dict[str, Any]]:
        """What must stand beside the scores of the validation split, of which these are the outputs."""
        searched = self.run.encoded["valid"][: self.run.settings.evaluate.examples]
        return caveats(self.run, "valid", self.search, searched, predictions)

    def rank(self, metrics: Mapping[str, float]) -> list[float]:
        """The rank of an evaluation, higher is better: the metric `evaluate.best`, then the loss."""
        name = self.run.settings.evaluate.best
        metric = metric_and_test(name)[0]
        higher = metric != "loss" and self.metrics[metric].higher_is_better
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
        texts = [(each.hypothesis, each.hypothesis if is_right(each) else each.reference) for each in predictions]
        pieces = [(each.hypothesis_pieces, each.reference_pieces) for each in predictions]
        counted["repetition"] = repetition(texts, pieces)
    return counted
