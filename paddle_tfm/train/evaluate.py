"""Scoring a model on a split: its likelihood with the reference fed, and metrics of what it writes by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import paddle

from paddle_tfm.data.batches import in_order
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Likelihood, Metric, Prediction, Search
from paddle_tfm.search.decoding import decode_all


def likelihood(model: Transformer, examples: Sequence[Encoded], max_tokens: int = 4096) -> Likelihood:
    """Negative log-likelihood in nats, and how many most-probable tokens are right, over the real target tokens."""
    training = model.training
    model.eval()
    negative, correct, tokens = 0.0, 0, 0
    with paddle.no_grad():
        for batch in in_order(examples, max_tokens):
            batch = batch.tensors()
            h, memory = model(batch)
            log_probs = model.head.log_probs(h, memory)
            target = batch.target_copy if model.head.extends_vocabulary else batch.target_out
            valid = batch.target_valid
            chosen = log_probs.take_along_axis(target.unsqueeze(-1), -1).squeeze(-1)
            negative -= float((chosen * valid.astype(chosen.dtype)).astype("float64").sum())
            correct += int(paddle.logical_and(log_probs.argmax(-1) == target, valid).astype("int64").sum())
            tokens += batch.tokens
    if training:
        model.train()
    return Likelihood(negative, correct, tokens)


def predict(
    model: Transformer,
    codec: Codec,
    examples: Sequence[Encoded],
    search: Search,
    max_tokens: int = 4096,
    progress: Callable[[int], None] | None = None,
) -> list[Prediction]:
    """The best hypothesis for every example, as text beside its reference."""
    found = decode_all(model, examples, search, max_tokens, progress)
    predictions = []
    for encoded, hypotheses in zip(examples, found):
        pieces = codec.pieces(hypotheses[0].ids, encoded.extra)
        reference = tuple(codec.target.tokenize(encoded.example.target))
        predictions.append(
            Prediction(
                encoded.example.source,
                codec.text(reference),
                codec.text(pieces),
                reference,
                tuple(pieces),
                hypotheses[0].score,
            )
        )
    return predictions


def score(metrics: Mapping[str, Metric], predictions: Sequence[Prediction], likelihood: Likelihood) -> dict[str, float]:
    """loss (nats a token) and every metric, by name."""
    values = {"loss": likelihood.negative_log / max(likelihood.tokens, 1)}
    return values | {name: float(metric.compute(predictions, likelihood)) for name, metric in metrics.items()}
