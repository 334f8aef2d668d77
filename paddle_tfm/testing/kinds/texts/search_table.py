"""A table of log-probabilities in the place of a model, over which a search is tried."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import randomness
from paddle_tfm.protocols import MASKED_SCORE, Decoding, Hypothesis
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.results import ComponentError

WORDS = 7
MAX_LENGTHS = [6, 9, 3, 7, 1]
ALIKE = 1000  # sentences whose numbers differ by so many are alike: only draws tell them apart
NO_END = -60.0  # added to the score of the end token: it has no chance


class TableDecoding(Decoding):
    """Log-probabilities that are a fixed function of a sentence's number, modulo `ALIKE`, and of the tokens so far."""

    bos, eos = 1, 2

    def __init__(self, max_lengths: list[int], sentences: list[int] | None = None, ending: float = 0.0):
        self.max_lengths = max_lengths
        self.sentences = list(range(len(max_lengths))) if sentences is None else sentences
        self.rows: list[tuple[int, tuple[int, ...]]] = [(sentence, ()) for sentence in self.sentences]
        self.ending, self.steps = ending, 0

    def next(self, sentence: int, tokens: tuple[int, ...]) -> np.ndarray:
        """log P(next token | sentence, tokens), float32 [V]; padding and the begin are impossible."""
        scores = randomness.generator(sentence % ALIKE, *tokens).normal(scale=2.0, size=WORDS)
        scores[2] += self.ending
        scores[:2] = -np.inf
        scores -= np.log(np.exp(scores).sum())
        return np.maximum(scores, MASKED_SCORE).astype("float32")

    def advance(self, tokens: Tensor) -> Tensor:
        self.steps += 1
        if self.steps > 10 * max(self.max_lengths) + 50:
            raise ComponentError(
                f"it continues after {self.steps - 1} steps, though no output may be longer than "
                f"{max(self.max_lengths)}"
            )
        ids = tokens.numpy().tolist()
        if len(ids) != len(self.rows):
            raise ComponentError(f"it feeds {len(ids)} tokens to {len(self.rows)} rows")
        self.rows = [
            (sentence, so_far if token == self.bos and not so_far and self.steps == 1 else (*so_far, token))
            for (sentence, so_far), token in zip(self.rows, ids)
        ]
        return paddle.to_tensor(np.stack([self.next(*row) for row in self.rows]))

    def select(self, rows: Tensor) -> None:
        self.rows = [self.rows[i] for i in rows.numpy().tolist()]

    def summed(self, sentence: int, ids: list[int]) -> tuple[float, float]:
        """(Σ log-probabilities of these tokens and of the end behind them, that of the end)."""
        path = [*ids, self.eos]
        steps = [float(self.next(sentence, tuple(path[:i]))[token]) for i, token in enumerate(path)]
        return sum(steps), steps[-1]

    def likeliest(self, sentence: int) -> list[int]:
        """The likeliest token, step by step, up to the end token or the greatest length."""
        ids: list[int] = []
        while len(ids) < self.max_lengths[sentence]:
            token = int(np.argmax(self.next(sentence, tuple(ids))))
            if token == self.eos:
                break
            ids.append(token)
        return ids


def hypotheses_of(subject: ComponentUnderTest, table: TableDecoding) -> list[list[Hypothesis]]:
    """What a search finds for each sentence."""
    with randomness.random_context(1, 1):
        return subject.build().run(table)


def ids_of(outputs: list[list[Hypothesis]]) -> list[list[list[int]]]:
    """The ids of each hypothesis of each sentence."""
    return [[hypothesis.ids for hypothesis in hypotheses] for hypotheses in outputs]


def is_drawn(
    subject: ComponentUnderTest, max_lengths: list[int], ending: float, outputs: list[list[list[int]]]
) -> bool:
    """Whether sentences that are alike, but for what is drawn, have other outputs."""
    others = [sentence + ALIKE for sentence in range(len(max_lengths))]
    with randomness.random_context(2, 2):
        return ids_of(subject.build().run(TableDecoding(max_lengths, others, ending))) != outputs
