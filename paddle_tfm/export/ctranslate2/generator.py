"""Continuing a text through an export: ids in, ids out, for decoder-only models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from paddle_tfm import runtime
from paddle_tfm.data.vocabulary import BOS, SPECIAL, UNKNOWN, Vocabulary
from paddle_tfm.export.ctranslate2.decoder import IMPOSSIBLE, NO_PENALTY, PATIENCE, Held, ranked
from paddle_tfm.export.ctranslate2.spec import open_export, tokens
from paddle_tfm.inference.generate import OnToken, continue_ids, ignore, seen_tokens
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Hypothesis, Search

WAIT = 0.05  # seconds between two questions whether a text that says nothing more has ended


class ExportedGenerator:
    """What `paddle_tfm.inference.generate.continue_ids` does, done by CTranslate2: the same window moves over the text.

    A greedy search has the same outputs. What needs to remember more than CTranslate2 does is left to our own search: a
    beam, or `no_repeat_ngram`, whose text is longer than the window, or with a model whose prompt must be fed token by
    token. Scores are 0.

    Args:
        folder: of the export. held: how CTranslate2 holds a search.
        prompt_at_once: whether a prompt may be fed at once (`Variables`).
    """

    def __init__(self, model: Transformer, folder: Path, held: Held, vocabulary: Vocabulary, prompt_at_once: bool):
        self._generator = open_export("Generator", folder, "float32", intra_threads=runtime.threads())
        self.model, self.held, self.prompt_at_once = model, held, prompt_at_once
        self._pieces = tokens(vocabulary.pieces)

    def __call__(
        self, prompt: Sequence[int], max_length: int, search: Search, number: int = 0, on_token: OnToken = ignore
    ) -> Hypothesis:
        """The best continuation, as `continue_ids`."""
        options, constraints, space = self.held(search), search.constraints(), self.model.max_length - 1
        if options["beam_size"] > 1 or constraints.no_repeat_ngram > 0:
            if not self.prompt_at_once or len(prompt) + max_length > space + 1:
                return continue_ids(self.model, prompt, max_length, search, number, on_token)
        output: list[int] = []
        while len(output) < max_length:
            text = [*prompt, *output]
            seen = text[len(text) - seen_tokens(len(text), self.model.max_length) :]
            room = min(space - len(seen) + 1, max_length - len(output))  # tokens until the window is full
            least = min(room, max(0, constraints.min_length - len(output)))
            new = self._continued(seen, least, room, search, options, on_token)
            output += new
            if len(new) < room:
                break
        return Hypothesis(output, 0.0)

    def _continued(
        self, seen: list[int], least: int, most: int, search: Search, options: Mapping[str, Any], on_token: OnToken
    ) -> list[int]:
        """From `least` to `most` tokens that follow these; without a beam each is reported as it comes."""
        size, fed = options["beam_size"], 0 if self.prompt_at_once else len(seen)
        steps: SimpleQueue = SimpleQueue()
        stopped = False

        def report(step) -> bool:
            steps.put(step)
            return stopped

        (pending,) = self._generator.generate_batch(
            [[self._pieces[i] for i in [BOS, *seen]]],
            beam_size=size,
            num_hypotheses=size if size == 1 else PATIENCE * size,
            patience=PATIENCE,
            return_scores=size > 1,
            length_penalty=NO_PENALTY,
            max_length=fed + most,
            min_length=fed + least,
            no_repeat_ngram_size=search.constraints().no_repeat_ngram,
            include_prompt_in_result=not self.prompt_at_once,
            suppress_sequences=[*IMPOSSIBLE, [SPECIAL[UNKNOWN]]],
            callback=report if size == 1 else None,
            asynchronous=True,
        )
        number = 0
        try:
            while size == 1 and not (pending.done() and steps.empty()):
                try:
                    step = steps.get(timeout=WAIT)
                except Empty:
                    continue
                if not step.is_last:  # it may be the end
                    number += 1
                    if number > fed:
                        on_token(step.token_id)
        finally:
            stopped = True
        result = pending.result()
        scores = result.scores if result.scores else [0.0] * len(result.sequences_ids)
        several = [Hypothesis(ids[fed:], score) for ids, score in zip(result.sequences_ids, scores)]
        best = ranked(several, options)[0].ids
        for token in best[max(0, number - fed) :] if size == 1 else []:
            on_token(token)
        return best
