"""The engine's side of a search: a model, a state, and one step at a time over its key/value cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import processes
from paddle_tfm.data.batches import Batch, in_order, lengths
from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.vocabulary import BOS, EOS, PAD
from paddle_tfm.errors import UserError
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import MASKED_SCORE, Decoding, Hypothesis, Search
from paddle_tfm.search.constraints import Constrained


class ModelDecoding(Decoding):
    """Unfinished outputs of one batch under one model, each at most `max_lengths` long."""

    bos, eos = BOS, EOS

    def __init__(self, model: Transformer, batch: Batch, limits: list[int], sentences: list[int]):
        self.model, self.max_lengths, self.sentences = model, limits, sentences
        memory = model.encode(batch.source, batch.source_valid, batch.copy_ids, batch.extra)
        self.state = model.start(memory)
        self._places = np.arange(len(sentences))  # the sentence that each row looks at
        self._foreign: Tensor | None = None

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V'] of the next; impossible are padding, begin, and
        words of other sentences' sources."""
        h, self.state = self.model.decode(tokens.unsqueeze(1), self.state)
        log_probs = possible(self.model.head.log_probs(h, self.state.memory).squeeze(1))  # [R, 1, V'] -> [R, V']
        if not (self.model.head.extends_vocabulary and self.state.memory.extra):
            return log_probs
        if self._foreign is None:
            self._foreign = self._words_of_others(log_probs.shape[1])
        return log_probs + self._foreign

    def _words_of_others(self, vocabulary: int) -> Tensor:
        """[R, V']: MASKED_SCORE for words of other sentences' sources."""
        memory = self.state.memory
        own = memory.copy_ids.max(1, keepdim=True).clip(min=vocabulary - memory.extra - 1)  # [R, 1]: the last possible
        return (paddle.arange(vocabulary) > own).astype("float32") * MASKED_SCORE

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only. While a beam puts its outputs in another order and none of its sentences ends, the
        memory and its keys and values stay where they are."""
        places = self._places[rows.numpy()]
        same = np.array_equal(places, self._places)
        self.state, self._places = self.state.select(rows, same), places
        if self._foreign is not None and not same:
            self._foreign = self._foreign.index_select(rows, 0)


class Labelling(Decoding):
    """The labels of one batch under an encoder-only model, as outputs: step t gives the distribution of label t, whatever
    the others are; the end comes after the last one, and nowhere else. So every search finds what it finds elsewhere."""

    bos, eos = BOS, EOS

    def __init__(self, model: Transformer, batch: Batch, sentences: list[int]):
        memory = model.encode(batch.source, batch.source_valid)
        read = model.head.log_probs(model.read(memory), memory)  # [B, S, V]
        log_probs = possible(read.flatten(0, 1))
        log_probs[:, EOS] = MASKED_SCORE
        self._log_probs = log_probs.reshape(read.shape)
        self._counts = np.ones(len(sentences), np.int64)
        if model.labels == "token":
            self._counts = memory.valid.astype("int64").sum(1).numpy() - 1  # without the end token
        self.max_lengths, self.sentences = self._counts.tolist(), sentences
        self._rows, self._step = np.arange(len(sentences)), 0

    def advance(self, tokens: Tensor) -> Tensor:
        """Log-probabilities [R, V] of the next label; of the end 0 where there is none, and of all others MASKED_SCORE."""
        rows = paddle.to_tensor(self._rows)
        log_probs = self._log_probs[:, min(self._step, self._log_probs.shape[1] - 1)].index_select(rows)
        over = paddle.to_tensor(self._step >= self._counts[self._rows]).unsqueeze(1)  # [R, 1]
        end = paddle.full_like(log_probs, MASKED_SCORE)
        end[:, EOS] = 0.0
        self._step += 1
        return paddle.where(over, end, log_probs)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self._rows = self._rows[rows.numpy()]


def possible(log_probs: Tensor) -> Tensor:
    """log_probs [R, V'] as float32, padding and begin being impossible."""
    log_probs = log_probs if log_probs.dtype == paddle.float32 else log_probs.astype("float32")
    for impossible in (PAD, BOS):
        log_probs[:, impossible] = MASKED_SCORE
    return log_probs


def decode_batch(
    model: Transformer,
    batch: Batch,
    search: Search,
    prefixes: Sequence[Sequence[int]] | None = None,
    sentences: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses of each sentence of a batch (of tensors), best first.

    Args:
        prefixes: for each sentence of the batch the ids that its outputs must begin with. sentences: their numbers,
            which draws of a search depend on; None: their places among the examples.
    Raises:
        UserError: the search gave none for a sentence.
    """
    size, constraints = len(batch.index), search.constraints()
    prefixes = [[] for _ in range(size)] if prefixes is None else prefixes
    sentences = list(batch.index.tolist() if sentences is None else sentences)
    with paddle.no_grad():
        if model.decoder is None:
            decoding = Labelling(model, batch, sentences)
        else:
            decoding = ModelDecoding(model, batch, _limits(model, batch, search, prefixes), sentences)
        if any(prefixes) or constraints.min_length > 0 or constraints.no_repeat_ngram > 0:
            decoding = Constrained(decoding, constraints, prefixes)
        found = search.run(decoding) or []
    if len(found) != size or not all(found):
        raise UserError(
            f"search {type(search).__name__}: `run` must return at least one hypothesis for each of "
            f"{size} sentences, but did so for {sum(map(bool, found))}"
        )
    return found


def _limits(model: Transformer, batch: Batch, search: Search, prefixes: Sequence[Sequence[int]]) -> list[int]:
    """The longest output of each sentence. Not of the batch: an output must not depend on its neighbours."""
    constraints, limits = search.constraints(), []
    for length, prefix in zip(batch.source_valid.astype("int64").sum(1).tolist(), prefixes):
        limit = search.limit(length - 1)
        if constraints.max_length is not None:
            limit = min(limit, constraints.max_length)
        limits.append(min(max(limit, constraints.min_length, len(prefix)), model.max_length - 1))
    return limits


def portions(examples: Sequence[Encoded], max_tokens: int) -> list[Batch]:
    """All examples once, the longest first, in as many batches as keep all processes busy."""
    tokens = int(lengths(examples).max(0, initial=0).sum())
    return list(in_order(examples, processes.batch_budget(tokens, max_tokens)))


def decode_all(
    model: Transformer,
    examples: Sequence[Encoded],
    search: Search,
    max_tokens: int = 4096,
    progress: Callable[[int], None] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    sentences: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses of every example, decoded in batches of like length, by several processes where there are threads for
    them, and put back in order.

    Args:
        progress: told how many examples have been decoded since it was last told. prefixes, sentences: as of
            `decode_batch`, one for each example.
    """
    found: list[list[Hypothesis]] = [[] for _ in examples]
    training = model.training
    model.eval()
    batches = portions(examples, max_tokens)

    def decode(batch: Batch) -> list[list[Hypothesis]]:
        forced = None if prefixes is None else [prefixes[i] for i in batch.index]
        numbers = None if sentences is None else [sentences[i] for i in batch.index]
        return decode_batch(model, batch.tensors(), search, forced, numbers)

    for place, outputs in processes.imap_unordered(decode, batches):
        for i, hypotheses in zip(batches[place].index, outputs):
            found[i] = hypotheses
        if progress is not None:
            progress(len(outputs))
    if training:
        model.train()
    return found
