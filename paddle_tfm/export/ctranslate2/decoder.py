"""Decoding through an export: ids in, ids out, for encoder-decoder models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddle_tfm import runtime
from paddle_tfm.data.batches import lengths
from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.vocabulary import BOS, EOS, PAD, SPECIAL, Vocabulary
from paddle_tfm.export.ctranslate2.spec import open_export, tokens
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Hypothesis, Search
from paddle_tfm.search.decoding import decode_all, max_length
from paddle_tfm.train.evaluate import log_probs

IMPOSSIBLE = [[SPECIAL[PAD]], [SPECIAL[BOS]]]
Held = Callable[[Search], Mapping[str, Any]]  # search → its `beam_size`, and `penalty` if it ranks by one: `Rules.held`
NO_PENALTY = 1.0e-30  # |y|^1e-30 = 1, so that scores are sums; at 0 the search would end with its first output
PATIENCE = 2  # a sentence ends with so many times `size` complete outputs; docs/export.md: what more would cost


class ExportedDecoder:
    """What `paddle_tfm.search.decoding.decode_all` does, done by CTranslate2: searches that it holds, with the same
    constraints, forced prefixes and longest outputs.

    A greedy search has the same outputs. A beam search expands the same way, but ends as soon as PATIENCE · `size`
    outputs are complete, where ours continues while a better one can come; then both rank by the same penalty. What is
    left to our own search: texts longer than the tables of the export, and sentences of which an output of a beam was
    cut at its longest, which CTranslate2 scores without the end token.

    Args:
        folder: of the export; its arithmetic is that of its numbers (float32, int8, …).
        held: how CTranslate2 holds a search.
        positions: the longest text of the export.
        scores: whether log-probabilities are computed, by the model under teacher forcing; else they are 0.
    """

    def __init__(
        self,
        model: Transformer,
        folder: Path,
        held: Held,
        source: Vocabulary,
        target: Vocabulary,
        positions: int,
        scores: bool = True,
        compute_type: str = "default",
    ):
        threads = {"inter_threads": runtime.threads(), "intra_threads": 1}
        self._translator = open_export("Translator", folder, compute_type, **threads)
        self.model, self.held, self.positions, self.scores = model, held, positions, scores
        self._sources, self._targets = tokens(source.pieces), tokens(target.pieces)
        self._ids = {token: i for i, token in enumerate(self._targets)}

    def __call__(
        self,
        examples: Sequence[Encoded],
        search: Search,
        max_tokens: int = 4096,
        progress: Callable[[int], None] | None = None,
        prefixes: Sequence[Sequence[int]] | None = None,
        sentences: Sequence[int] | None = None,
        wanted: int | None = None,
    ) -> list[list[Hypothesis]]:
        """Hypotheses of every example, as `decode_all`."""
        options = self.held(search)
        outputs: list[list[Hypothesis]] = [[] for _ in examples]
        left = [i for i, example in enumerate(examples) if len(example.source) > self.positions]
        pending = []
        for index in self._batches(examples, max_tokens):
            forced = [[]] * len(index) if prefixes is None else [prefixes[i] for i in index]
            pending.append((index, *self._start([examples[i] for i in index], forced, search, options)))
        for index, max_lengths, results in pending:
            before = len(left)
            for i, limit, result in zip(index, max_lengths, results):
                hypotheses = result.result().hypotheses
                if options["beam_size"] > 1 and any(len(each) >= limit for each in hypotheses):
                    left.append(i)
                else:
                    outputs[i] = self._hypotheses(result.result(), limit, options)
            if progress is not None:
                progress(len(index) - (len(left) - before))
        if left:
            beginnings = None if prefixes is None else [prefixes[i] for i in left]
            numbers = left if sentences is None else [sentences[i] for i in left]
            ours = [examples[i] for i in left]
            own = decode_all(self.model, ours, search, max_tokens, progress, beginnings, numbers, wanted)
            for i, hypotheses in zip(left, own):
                outputs[i] = hypotheses
        if self.scores:
            outputs = self._scored(examples, outputs, options, max_tokens, set(left))
        return outputs

    def _batches(self, examples: Sequence[Encoded], max_tokens: int) -> Iterator[list[int]]:
        """The examples that the tables hold, sources of like length together."""
        order = np.argsort(-lengths(examples)[0], kind="stable").tolist()
        group: list[int] = []
        for i in order:
            if len(examples[i].source) > self.positions:
                continue
            if group and len(examples[group[0]].source) * (len(group) + 1) > max_tokens:
                yield group
                group = []
            group.append(i)
        if group:
            yield group

    def _start(
        self, examples: Sequence[Encoded], prefixes: Sequence[Sequence[int]], search: Search, options: Mapping[str, Any]
    ):
        """The longest outputs of a batch, and its results to come."""
        constraints, size = search.constraints(), options["beam_size"]
        max_lengths = [
            max_length(self.model.max_length, search, len(example.source) - 1, prefix)
            for example, prefix in zip(examples, prefixes)
        ]
        sources = [[self._sources[i] for i in example.source[:-1]] for example in examples]
        beginnings = [[self._targets[i] for i in prefix] for prefix in prefixes] if any(prefixes) else None
        results = self._translator.translate_batch(
            sources,
            target_prefix=beginnings,
            beam_size=size,
            num_hypotheses=size if size == 1 else PATIENCE * size,
            patience=PATIENCE,
            return_scores=size > 1,
            length_penalty=NO_PENALTY,
            max_decoding_length=max(max_lengths),
            min_decoding_length=min([constraints.min_length, *max_lengths]),
            no_repeat_ngram_size=constraints.no_repeat_ngram,
            suppress_sequences=IMPOSSIBLE,
            disable_unk=not constraints.unknown,
            max_input_length=0,
            asynchronous=True,
        )
        return max_lengths, results

    def _hypotheses(self, result, limit: int, options: Mapping[str, Any]) -> list[Hypothesis]:
        """Those of a sentence, best first, at most `size`. What is longer than its own limit is cut there, as a greedy
        search would have ended; the limit of a batch is that of its longest."""
        cut = [[self._ids[token] for token in hypothesis[:limit]] for hypothesis in result.hypotheses]
        scores = result.scores if result.scores else [0.0] * len(cut)
        return ranked(list(map(Hypothesis, cut, scores)), options)[: options["beam_size"]]

    def _scored(
        self, examples, outputs, options: Mapping[str, Any], max_tokens: int, done: set[int]
    ) -> list[list[Hypothesis]]:
        """The same hypotheses with their log-probabilities under the model."""
        flat = [(i, hypothesis) for i, several in enumerate(outputs) if i not in done for hypothesis in several]
        targets = [[*hypothesis.ids, EOS] for _, hypothesis in flat]
        forced = [examples[i]._replace(target=ids, target_copy=ids) for (i, _), ids in zip(flat, targets)]
        scores = log_probs(self.model, forced, max_tokens)
        scored: list[list[Hypothesis]] = [outputs[i] if i in done else [] for i in range(len(outputs))]
        for (i, hypothesis), score in zip(flat, scores):
            scored[i].append(Hypothesis(hypothesis.ids, score))
        return [several if i in done else ranked(several, options) for i, several in enumerate(scored)]


def ranked(hypotheses: list[Hypothesis], options: Mapping[str, Any]) -> list[Hypothesis]:
    """Best first: by log-probability over the search's penalty of the length, with the end token."""
    if "penalty" not in options:
        return hypotheses
    return sorted(hypotheses, key=lambda each: -each.score / options["penalty"](len(each.ids) + 1))
