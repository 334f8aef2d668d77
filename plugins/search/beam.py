"""Beam search."""

from __future__ import annotations

from typing import Literal

import numpy as np
import paddle

from paddle_tfm import ops
from paddle_tfm.protocols import MASKED_SCORE, Decoding, Hypothesis
from paddle_tfm.validators import between, not_negative
from paddle_tfm_plugins.search._bounded import Bounded
from paddle_tfm_plugins.search._required import Partial, allocated, unmet


class Beam(Bounded):
    """Beam search: at each step the `size` most probable outputs survive; results are ranked by log-probability over a
    length penalty (arXiv:1609.08144).

    Formula: score(y) = log p(y) / ((5 + |y|) / 6)^alpha, |y| with the end token. A sentence ends when no unfinished
    output can beat those of its finished ones that somebody reads (`Decoding.wanted`), and then leaves the batch; it
    has up to `size` outputs, best first.

    Options: size; alpha (0: none); penalty: `gnmt` as above, or `power`, log p(y) / |y|^alpha; narrowing: each finished
    output takes a place of the beam away, which has fewer from then on, and what reaches the bound is cut there without
    an end (arXiv:1409.3215; Marian, with power); max_ratio and max_extra bound the output at max_ratio · source length
    + max_extra tokens, max_length at so many; min_length: no end before so many tokens, whatever max_ratio says;
    no_repeat_ngram: no run of so many tokens twice in an output (arXiv:1705.04304; 0: any); unknown: whether the
    unknown piece may be written.

    Required words (`Decoding.required`, arXiv:1804.06609) are placed by dynamic beam allocation: outputs that lack as
    many required tokens are a bank, banks share the beam, and no output ends before it lacks none.
    """

    greedy_with = {"size": 1, "alpha": 0.0}
    places_required = True

    def __init__(
        self,
        size: int = 5,
        alpha: float = 0.6,
        penalty: Literal["gnmt", "power"] = "gnmt",
        narrowing: bool = False,
        **parent,
    ):
        super().__init__(**parent)
        between("[1, 10000]", size=size)
        not_negative(alpha=alpha)
        self.size = self.nbest = size
        self.alpha, self.of_length, self.narrowing = alpha, penalty, narrowing

    def penalty(self, length: int) -> float:
        """((5 + length) / 6)^alpha, or length^alpha."""
        return (length if self.of_length == "power" else (5 + length) / 6) ** self.alpha

    def run(self, decoding: Decoding) -> list[list[Hypothesis]]:
        max_lengths, wanted = decoding.max_lengths, min(self.size, decoding.wanted or self.size)
        finished: list[list[tuple[float, Hypothesis]]] = [[] for _ in max_lengths]
        # unfinished sentences, and the unfinished outputs of each; rows of the model have the same order
        alive = list(range(len(max_lengths)))
        required = decoding.required or [()] * len(max_lengths)
        beams = [[Partial([], 0.0, unmet(of_sentence))] for of_sentence in required]
        tokens = paddle.full([len(max_lengths)], decoding.bos, dtype="int64")
        length = 0
        while alive:
            length += 1
            log_probs = decoding.advance(tokens)  # [R, V]
            candidates = self._candidates(log_probs, [beams[sentence] for sentence in alive])
            ends = log_probs[:, decoding.eos].tolist()
            rows, next_tokens, unfinished, row = [], [], [], 0
            for sentence, ranked in zip(alive, candidates):
                old = beams[sentence]
                beams[sentence] = []
                if length > max_lengths[sentence]:
                    ranked = [(each.score + ends[row + i], i, decoding.eos) for i, each in enumerate(old)]
                elif required[sentence]:
                    steps = log_probs[row : row + len(old)].numpy()
                    ranked = allocated(ranked, old, steps, decoding.eos, max_lengths[sentence] - length)
                survivors = self._advance(sentence, ranked, old, beams, finished, decoding.eos)
                if self.narrowing and length == max_lengths[sentence]:
                    cut = [Hypothesis(each.ids, each.score) for each in beams[sentence]]
                    finished[sentence] += [(each.score / self.penalty(length), each) for each in cut]
                    beams[sentence] = []
                if beams[sentence] and not self._settled(
                    finished[sentence], beams[sentence], max_lengths[sentence], wanted
                ):
                    unfinished.append(sentence)
                    rows += [row + i for i, _ in survivors]
                    next_tokens += [token for _, token in survivors]
                row += len(old)
            alive = unfinished
            if alive:
                decoding.select(paddle.to_tensor(rows, dtype="int64"))
                tokens = paddle.to_tensor(next_tokens, dtype="int64")
        ranked = [sorted(outputs, key=lambda item: -item[0])[:wanted] for outputs in finished]
        return [[hypothesis for _, hypothesis in outputs] for outputs in ranked]

    def _candidates(self, log_probs, groups) -> list[list[tuple[float, int, int]]]:
        """For each sentence its best 2 · size continuations (log-probability, beam, token): enough to keep `size` even
        if every beam could end."""
        steps, tokens = (each.numpy() for each in ops.top_k(log_probs, min(2 * self.size, log_probs.shape[1])))
        before = np.array([each.score for group in groups for each in group])  # [R]
        sentence = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        beam = np.concatenate([np.arange(len(group)) for group in groups])
        shape = (len(groups), self.size, steps.shape[1])
        scores, continuations = np.full(shape, -np.inf), np.zeros(shape, np.int64)
        scores[sentence, beam], continuations[sentence, beam] = before[:, None] + steps, tokens  # [R, 2K]
        scores, continuations = scores.reshape(len(groups), -1), continuations.reshape(len(groups), -1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : 2 * self.size]  # of equals, the first beam's
        scores, continuations = np.take_along_axis(scores, best, 1), np.take_along_axis(continuations, best, 1)
        possible = (scores > MASKED_SCORE / 2).sum(1).tolist()  # the rest is impossible, whatever came before
        ranked = zip(scores.tolist(), (best // shape[2]).tolist(), continuations.tolist(), possible)
        return [list(zip(score, i, token))[:number] for score, i, token, number in ranked]

    def _advance(self, sentence, ranked, old, beams, finished, eos) -> list[tuple[int, int]]:
        survivors: list[tuple[int, int]] = []
        places = len(old) if self.narrowing and old[0].ids else self.size
        for rank, (score, i, token) in enumerate(ranked[:places] if self.narrowing else ranked):
            if token == eos:
                if rank < places:
                    ids = old[i].ids
                    finished[sentence].append((score / self.penalty(len(ids) + 1), Hypothesis(ids, score)))
            elif len(survivors) < places:
                beams[sentence].append(old[i].extended(token, score))
                survivors.append((i, token))
        return survivors

    def _settled(self, finished, beams, max_length: int, wanted: int) -> bool:
        """Whether `wanted` outputs are finished and no continuation of a beam can be better than the worst of them:
        log-probabilities only fall, and the penalty is at most that of the maximum length."""
        if len(finished) < wanted:
            return False
        worst = sorted((score for score, _ in finished), reverse=True)[wanted - 1]
        return max(each.score for each in beams) / self.penalty(max_length + 1) <= worst
