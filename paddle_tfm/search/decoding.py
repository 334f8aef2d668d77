"""The engine's side of a search: a model, a state, and one step at a time over its key/value cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import place, processes
from paddle_tfm.data.batches import Batch, in_order, lengths
from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.vocabulary import BOS, EOS, PAD
from paddle_tfm.errors import UserError
from paddle_tfm.kernels import Mode, using
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import MASKED_SCORE, Decoding, Hypothesis, Memory, Search
from paddle_tfm.search.constraints import Constrained, alter_steps


class ModelDecoding(Decoding):
    """Unfinished outputs under one model with a decoder, each at most `max_lengths` long: a row for each sentence of
    `memory`, or a single row for a decoder-only model, which has none."""

    bos, eos = BOS, EOS

    def __init__(self, model: Transformer, memory: Memory | None, max_lengths: list[int], sentences: list[int]):
        self.model, self.max_lengths, self.sentences = model, max_lengths, sentences
        self.state = model.start(memory)
        self._sentence_of_row = np.arange(len(sentences))
        self._foreign_words: Tensor | None = None  # [R, V']: MASKED_SCORE for words of other sentences' sources

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V'] of the next; padding, begin and words of other
        sentences' sources are impossible."""
        log_probs = self.step(tokens.unsqueeze(1))
        memory = self.state.memory
        if memory is None or not memory.extra or not self.model.head.extends_vocabulary:
            return log_probs
        if self._foreign_words is None:
            self._foreign_words = _mask_foreign_words(memory, log_probs.shape[1])
        return log_probs + self._foreign_words

    def step(self, tokens: Tensor) -> Tensor:
        """Feed tokens int64 [R, T] → log-probabilities [R, V'] after the last of them; padding and begin are
        impossible."""
        log_probs, self.state = self.model.predict(tokens, self.state)
        return possible(log_probs)

    def select(self, rows: Tensor) -> None:
        """Keep these rows only. While a beam reorders its outputs and none of its sentences ends, the memory and its
        key/value cache stay as they are."""
        sentence_of_row = self._sentence_of_row[rows.numpy()]
        same = np.array_equal(sentence_of_row, self._sentence_of_row)
        self.state = self.state.select(rows, same, _group(sentence_of_row))
        self._sentence_of_row = sentence_of_row
        if self._foreign_words is not None and not same:
            self._foreign_words = self._foreign_words.index_select(rows, 0)


def _group(sentences: np.ndarray) -> int:
    """The number of rows of each sentence, if all have as many, one after another; else 1."""
    ends = np.flatnonzero(np.append(sentences[1:] != sentences[:-1], True)) + 1
    group = int(ends[0])
    return group if np.array_equal(ends, np.arange(1, len(ends) + 1) * group) else 1


def _mask_foreign_words(memory: Memory, vocabulary: int) -> Tensor:
    own = memory.copy_ids.max(1, keepdim=True).clip(min=vocabulary - memory.extra - 1)  # [R, 1]: the last possible
    return (paddle.arange(vocabulary) > own).astype("float32") * MASKED_SCORE


class Labelling(Decoding):
    """The labels of one batch under an encoder-only model, as outputs: step t gives the distribution of label t,
    whatever the others are; the end comes after the last label, and nowhere else. So every search works as with a
    decoder."""

    bos, eos = BOS, EOS

    def __init__(self, model: Transformer, batch: Batch, sentences: list[int]):
        memory = model.encode(batch.source, batch.source_valid)
        by_label = model.head.log_probs(model.label_states(memory), memory)  # [B, S, V]
        log_probs = possible(by_label.flatten(0, 1))  # [B, S, V] -> [B * S, V]
        log_probs[:, EOS] = MASKED_SCORE
        self._log_probs = log_probs.reshape(by_label.shape)  # [B, S, V]
        self._counts = np.ones(len(sentences), np.int64)
        if model.labels == "token":
            self._counts = batch.source_valid.astype("int64").sum(1).numpy() - 1  # without the end token
        self.max_lengths, self.sentences = self._counts.tolist(), sentences
        self._rows, self._step = np.arange(len(sentences)), 0

    def advance(self, tokens: Tensor) -> Tensor:
        """Log-probabilities [R, V] of the next label; where no label is left, 0 for the end and MASKED_SCORE for all
        others."""
        rows = paddle.to_tensor(self._rows)
        log_probs = self._log_probs[:, min(self._step, self._log_probs.shape[1] - 1)].index_select(rows)
        complete = paddle.to_tensor(self._step >= self._counts[self._rows]).unsqueeze(1)  # [R, 1]
        end = paddle.full_like(log_probs, MASKED_SCORE)
        end[:, EOS] = 0.0
        self._step += 1
        return paddle.where(complete, end, log_probs)

    def select(self, rows: Tensor) -> None:
        """Keep these rows only."""
        self._rows = self._rows[rows.numpy()]


class Ensemble(Decoding):
    """The mean of the probabilities of several models over the same tokens, at each step:

    p(token) = 1/M · Σ_m p_m(token). No output is longer than the shortest of its members' longest outputs.
    """

    def __init__(self, members: Sequence[Decoding]):
        self.members = members
        self.bos, self.eos, self.sentences = members[0].bos, members[0].eos, members[0].sentences
        self.max_lengths = [min(lengths) for lengths in zip(*(each.max_lengths for each in members))]

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V'] of the next."""
        by_model = paddle.stack([each.advance(tokens) for each in self.members])  # [M, R, V']
        return paddle.logsumexp(by_model, 0) - math.log(len(self.members))

    def select(self, rows: Tensor) -> None:
        """Keep these rows only."""
        for each in self.members:
            each.select(rows)


def possible(log_probs: Tensor) -> Tensor:
    """log_probs [R, V'] as float32, with MASKED_SCORE for padding and begin."""
    log_probs = log_probs if log_probs.dtype == paddle.float32 else log_probs.astype("float32")
    if place.on_cpu(log_probs) and log_probs.stop_gradient:
        np.from_dlpack(log_probs)[:, [PAD, BOS]] = MASKED_SCORE
        return log_probs
    for impossible in (PAD, BOS):
        log_probs[:, impossible] = MASKED_SCORE
    return log_probs


def decode_batch(
    model: Transformer,
    batch: Batch,
    search: Search,
    prefixes: Sequence[Sequence[int]] | None = None,
    sentences: Sequence[int] | None = None,
    wanted: int | None = None,
    others: Sequence[Transformer] = (),
    required: Sequence[Sequence[Sequence[int]]] | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses of each sentence of a batch (of tensors), best first.

    Args:
        prefixes: for each sentence of the batch the ids that its outputs must begin with. sentences: their numbers,
            on which draws of a search depend; None: their indices among the examples. wanted: how many of a sentence
            are read, which may be all that are returned; None: all. others: further models of an ensemble. required:
            for each sentence the ids that its outputs must hold, one list for each run of them.
    Raises:
        UserError: the search gave none for a sentence.
    """
    size, constraints = len(batch.index), search.constraints()
    prefixes = [[] for _ in range(size)] if prefixes is None else prefixes
    sentences = list(batch.index.tolist() if sentences is None else sentences)
    quiet = np.errstate(invalid="ignore", over="ignore")  # of a model that diverged
    models = [model, *others]
    kernels = {of: kernel for each in models for of, kernel in each.kernels.items()}
    with paddle.no_grad(), quiet, using(Mode("search"), kernels):
        members = [_decoding(each, batch, search, prefixes, sentences) for each in models]
        decoding = Ensemble(members) if others else members[0]
        if any(prefixes) or alter_steps(constraints):
            decoding = Constrained(decoding, constraints, prefixes)
        decoding.wanted, decoding.required = wanted, required
        hypotheses = search.run(decoding) or []
    if len(hypotheses) != size or not all(hypotheses):
        raise UserError(
            f"search {type(search).__name__}: `run` must return at least one hypothesis for each of "
            f"{size} sentences, but did so for {sum(map(bool, hypotheses))}"
        )
    return hypotheses


def _decoding(
    model: Transformer, batch: Batch, search: Search, prefixes: Sequence[Sequence[int]], sentences: list[int]
) -> Decoding:
    if model.decoder is None:
        return Labelling(model, batch, sentences)
    memory = model.encode(batch.source, batch.source_valid, batch.copy_ids, batch.extra)
    return ModelDecoding(model, memory, _max_lengths(model, batch, search, prefixes), sentences)


def max_length(longest_text: int, search: Search, source_length: int, prefix: Sequence[int] = ()) -> int:
    """The longest output of a sentence of `source_length` tokens, without the end token, that begins with `prefix`.
    `longest_text`: model.max_length."""
    constraints, longest = search.constraints(), search.limit(source_length)
    if constraints.max_length is not None:
        longest = min(longest, constraints.max_length)
    return min(max(longest, constraints.min_length, len(prefix)), longest_text - 1)


def _max_lengths(model: Transformer, batch: Batch, search: Search, prefixes: Sequence[Sequence[int]]) -> list[int]:
    """The longest output of each sentence. Not of the batch: an output must not depend on its neighbours."""
    source_lengths = batch.source_valid.astype("int64").sum(1).tolist()
    return [
        max_length(model.max_length, search, length - 1, prefix) for length, prefix in zip(source_lengths, prefixes)
    ]


def worker_batches(examples: Sequence[Encoded], max_tokens: int, max_rows: int | None = None) -> list[Batch]:
    """All examples once, the longest first, in enough batches to keep all workers busy."""
    tokens = int(lengths(examples).max(0, initial=0).sum())
    return list(in_order(examples, processes.batch_budget(tokens, max_tokens), max_rows))


def decode_all(
    model: Transformer,
    examples: Sequence[Encoded],
    search: Search,
    max_tokens: int = 4096,
    progress: Callable[[int], None] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    sentences: Sequence[int] | None = None,
    wanted: int | None = None,
    max_rows: int | None = None,
    padding: int = 0,
    others: Sequence[Transformer] = (),
    required: Sequence[Sequence[Sequence[int]]] | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses of every example, in the order of the examples; decoded in batches of similar length, by several
    workers where there are threads for them.

    Args:
        progress: called with the number of examples decoded since its last call. prefixes, sentences, wanted, others,
            required: as in `decode_batch`; of sentences, one for each example. max_rows: at most so many examples a
            batch. padding: columns of padding added to every source. These two change no output of a correct model.
    """
    hypotheses: list[list[Hypothesis]] = [[] for _ in examples]
    batches = worker_batches(examples, max_tokens, max_rows)

    def decode(batch: Batch) -> list[list[Hypothesis]]:
        batch = batch.padded(padding) if padding else batch
        batch_prefixes = None if prefixes is None else [prefixes[i] for i in batch.index]
        numbers = None if sentences is None else [sentences[i] for i in batch.index]
        of_batch = None if required is None else [required[i] for i in batch.index]
        return decode_batch(model, batch.tensors(), search, batch_prefixes, numbers, wanted, others, of_batch)

    with ExitStack() as evaluated:
        for each in (model, *others):
            evaluated.enter_context(each.evaluated())
        for batch_number, outputs in processes.imap_unordered(decode, batches):
            for i, of_example in zip(batches[batch_number].index, outputs):
                hypotheses[i] = of_example
            if progress is not None:
                progress(len(outputs))
    return hypotheses
