"""Evaluation of a model: its likelihood under teacher forcing, and metrics of the texts that its search generates."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import paddle
from paddle import Tensor

from paddle_tfm import processes
from paddle_tfm.data.batches import Batch
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.errors import UserError
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.predictions import squeezed
from paddle_tfm.protocols import Hypothesis, Likelihood, Metric, Prediction, Search
from paddle_tfm.protocols.metric import NO_LIKELIHOOD
from paddle_tfm.search.decoding import decode_all, worker_batches
from paddle_tfm.train.forms import LARGEST, is_countable


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
) -> list[float]:
    """The log-probability of each example's target with its end token, in nats, under teacher forcing; arguments as of
    `likelihood`."""
    batches, sums = _batches(model, examples, max_tokens, max_rows, padding), [0.0] * len(examples)
    by_batch = _map_batches(model, lambda batch: _teacher_forced(model, batch)[0].sum(1).tolist(), batches)
    for batch, of_batch in zip(batches, by_batch):
        for i, score in zip(batch.index.tolist(), of_batch):
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
    with paddle.no_grad():
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
    """The best hypothesis for every example and its reference, as texts whose white space is normalized. `decode`: what
    `decode_all` does for this model, done by another engine."""
    decode = functools.partial(decode_all, model) if decode is None else decode
    decoded = decode(examples, search, max_tokens, progress, wanted=1)
    predictions = []
    for encoded, hypotheses in zip(examples, decoded):
        source, target = encoded.example.source, encoded.example.target
        pieces = codec.pieces(hypotheses[0].ids, encoded.extra)
        predictions.append(
            Prediction(
                source,
                squeezed(encoded.text),
                squeezed(codec.text(pieces)),
                tuple(codec.target.tokenize(target)),
                tuple(pieces),
                hypotheses[0].score,
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
            raise UserError(f"metric '{name}': {error}") from error
        if not is_countable(values[name]):
            sentence = f"is {values[name]:g}, but a value must be at most {LARGEST:g} in size, or infinite"
            raise UserError(f"metric '{name}' {sentence}")
    return values


def text_metrics(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metrics that need texts only, from any system: neither likelihood nor pieces."""
    return {name: metric for name, metric in metrics.items() if metric.needs_search and not metric.needs_pieces}


def signatures(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """The signatures (version and options) of the metrics that have one, to be reported with their values."""
    return {name: signature for name, metric in metrics.items() if (signature := metric.signature())}
