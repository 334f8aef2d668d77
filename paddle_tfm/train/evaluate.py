"""Scoring a model on a split: its likelihood under teacher forcing, and metrics of what its search generates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import processes
from paddle_tfm.data.batches import Batch
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.errors import UserError
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.predictions import squeezed
from paddle_tfm.protocols import Likelihood, Metric, Prediction, Search
from paddle_tfm.protocols.metric import NO_LIKELIHOOD
from paddle_tfm.search.decoding import decode_all, worker_batches


def likelihood(model: Transformer, examples: Sequence[Encoded], max_tokens: int = 4096) -> Likelihood:
    """Negative log-likelihood in nats, and how many most probable tokens are right, over the real target tokens, under
    teacher forcing."""
    training = model.training
    model.eval()
    batches = worker_batches(examples, max_tokens)
    sums = dict(processes.imap_unordered(lambda batch: _likelihood(model, batch.tensors()), batches))
    if training:
        model.train()
    negative, correct = (sum(sums[i][part] for i in range(len(batches))) for part in (0, 1))
    characters = sum(len(encoded.example.target) for encoded in examples)
    return Likelihood(float(negative), int(correct), sum(batch.tokens for batch in batches), characters)


def _likelihood(model: Transformer, batch: Batch[Tensor]) -> tuple[float, int]:
    """The first two parts of `Likelihood` for a batch of tensors."""
    with paddle.no_grad():
        h, memory = model(batch)
        log_probs = model.head.log_probs(h, memory)
        target, valid = model.target(batch), batch.target_valid
        scores = log_probs.take_along_axis(target.unsqueeze(-1), -1).squeeze(-1)
        negative = -float((scores * valid.astype(scores.dtype)).astype("float64").sum())
        correct = int(paddle.logical_and(log_probs.argmax(-1) == target, valid).astype("int64").sum())
    return negative, correct


def predict(
    model: Transformer,
    codec: Codec,
    examples: Sequence[Encoded],
    search: Search,
    max_tokens: int = 4096,
    progress: Callable[[int], None] | None = None,
) -> list[Prediction]:
    """The best hypothesis for every example, as text beside the corpus' own, white space squeezed in both."""
    decoded = decode_all(model, examples, search, max_tokens, progress)
    predictions = []
    for encoded, hypotheses in zip(examples, decoded):
        source, target = encoded.example.source, encoded.example.target
        pieces = codec.pieces(hypotheses[0].ids, encoded.extra)
        predictions.append(
            Prediction(
                source,
                squeezed(target),
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
    """loss (nats a token) and every metric, by name; without a likelihood no loss, and only metrics `of_texts`."""
    values = {} if likelihood is None else {"loss": likelihood.negative_log / max(likelihood.tokens, 1)}
    for name, metric in metrics.items():
        try:
            values[name] = float(metric.compute(predictions, likelihood or NO_LIKELIHOOD))
        except ValueError as error:
            raise UserError(f"metric '{name}': {error}") from error
    return values


def of_texts(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metrics that texts are enough for, of any system: they need neither likelihood nor pieces."""
    return {name: metric for name, metric in metrics.items() if metric.needs_search and not metric.needs_pieces}


def signatures(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """What must stand beside the values, of the metrics that have such a signature."""
    return {name: signature for name, metric in metrics.items() if (signature := metric.signature())}


def lengths(texts: Sequence[str]) -> tuple[str, list[int]]:
    """The unit, and how many of it each text has: words between spaces, or characters where most texts hold no space
    (Chinese; single words)."""
    split = [text.split() for text in texts]
    if 2 * sum(len(words) > 1 for words in split) >= len(texts):
        return "words", [len(words) for words in split]
    return "characters", [sum(map(len, words)) for words in split]


def buckets(sizes: Sequence[int], edges: Sequence[int] = ()) -> dict[str, list[int]]:
    """Where the examples of each length stand, by the name of the bucket: up to the first of the ascending `edges`,
    from there up to the next, …, beyond the last. Without edges: four buckets of about as many examples each, fewer
    where lengths are alike."""
    if not edges:
        quarters = np.quantile(sizes, (0.25, 0.5, 0.75), method="lower").tolist()
        edges = sorted({size for size in quarters if size < max(sizes)})
    ends = pairwise([-math.inf, *edges, math.inf])
    return {_range(low, high): [i for i, size in enumerate(sizes) if low < size <= high] for low, high in ends}


def _range(low: float, high: float) -> str:
    """The lengths above `low` and up to `high`, in words."""
    if low == -math.inf:
        return "all" if high == math.inf else f"≤ {high}"
    if high == math.inf:
        return f"> {low}"
    return str(high) if high == low + 1 else f"{low + 1}–{high}"
