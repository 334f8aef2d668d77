"""What holds for a search by itself: over a table of log-probabilities in the place of a model."""

from __future__ import annotations

import itertools

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import randomness
from paddle_tfm.protocols import MASKED_SCORE, Decoding, Hypothesis
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.other_process import as_in_another_process
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import ComponentError, Failed, Passed, Result, Skip

COMPARED, COMPARED_LENGTH = 24, 6  # sentences, and tokens of each
DRAWN, MAX_CORRELATION = 150, 0.45  # outputs of one sentence; 0.3 is chance once in 4,000 times
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


@check(
    "search",
    invariant="an output ends at the end token or at its maximal length, and nowhere else",
    consequence="decoding never stops, or words follow the end of a sentence",
    hint="the comparison with `eos` (not with `bos`), what happens to finished rows, `max_lengths`",
)
def stops(subject: ComponentUnderTest) -> Result:
    for ending in (0.0, 3.0, -8.0, NO_END):
        table = TableDecoding(MAX_LENGTHS, ending=ending)
        for sentence, hypotheses in enumerate(hypotheses_of(subject, table)):
            if not hypotheses:
                return Failed("a sentence without any hypothesis")
            if ending == NO_END and len(hypotheses[0].ids) < MAX_LENGTHS[sentence]:
                return Failed(
                    f"the best output has {len(hypotheses[0].ids)} tokens, where {MAX_LENGTHS[sentence]} are allowed "
                    f"and the end has no chance"
                )
            for hypothesis in hypotheses:
                if len(hypothesis.ids) > MAX_LENGTHS[sentence]:
                    return Failed(
                        f"an output of {len(hypothesis.ids)} tokens, where {MAX_LENGTHS[sentence]} are allowed"
                    )
                if set(hypothesis.ids) & {0, TableDecoding.bos, TableDecoding.eos}:
                    return Failed(f"an output holds special ids: {hypothesis.ids}")
    return Passed()


@check(
    "search",
    invariant="an output's score is the sum of the log-probabilities of its tokens and of its end",
    consequence="the best of several hypotheses is not the best",
    hint="which score is kept when beams change places; the caches, which `decoding.select` reorders with them at each "
    "step; the end token's own probability",
)
def scores(subject: ComponentUnderTest) -> Result:
    for ending in (1.0, 0.0, -2.0):  # few hypotheses live long, or most do: caches are reordered again and again
        table = TableDecoding(MAX_LENGTHS, ending=ending)
        for sentence, hypotheses in enumerate(hypotheses_of(subject, table)):
            for hypothesis in hypotheses:
                total, end = table.summed(sentence, hypothesis.ids)
                reached = len(hypothesis.ids) == MAX_LENGTHS[sentence]  # its end may have had no step
                score = hypothesis.score
                if not abs(score - total) < 1e-3 and not (reached and abs(score - (total - end)) < 1e-3):
                    return Failed(f"{hypothesis.ids} has the score {score:.4f}, its tokens sum to {total:.4f}")
    return Passed()


@check(
    "search",
    invariant="sentences of a batch do not influence each other, and the same search gives the same",
    consequence="a translation depends on what is translated beside it",
    hint="top-k over the whole batch; rows mixed up when finished ones leave; draws that depend on a row's place; "
    "results that are kept in the object",
)
def independent(subject: ComponentUnderTest) -> Result:
    table = TableDecoding([*MAX_LENGTHS])
    together = hypotheses_of(subject, table)
    if table.max_lengths != MAX_LENGTHS:
        return Failed(f"it changes `decoding.max_lengths` from {MAX_LENGTHS} to {table.max_lengths}")
    with as_in_another_process():
        again = hypotheses_of(subject, TableDecoding(MAX_LENGTHS))
    if ids_of(together) != ids_of(again):
        return Failed("the same search, done twice, gives different outputs")
    search = subject.build()
    for max_lengths in (MAX_LENGTHS[::-1], MAX_LENGTHS):
        with randomness.random_context(1, 1):
            last = search.run(TableDecoding(max_lengths))
    if ids_of(last) != ids_of(together):
        return Failed("after another batch it gives other outputs")
    for sentence, max_length in enumerate(MAX_LENGTHS):
        alone = ids_of(hypotheses_of(subject, TableDecoding([max_length], [sentence])))[0]
        if alone != (among := ids_of(together)[sentence]):
            return Failed(f"sentence {sentence} alone gives {alone}, among others {among}")
    return Passed()


@check(
    "search",
    invariant="hypotheses come best first: of those with equal lengths, the likelier before the less likely",
    consequence="the output that is read is not the best of those that were found",
    hint="the order in which hypotheses are returned: by score, from the highest down",
)
def best_first(subject: ComponentUnderTest) -> Result:
    for ending in (1.0, NO_END):
        for sentence, hypotheses in enumerate(hypotheses_of(subject, TableDecoding(MAX_LENGTHS, ending=ending))):
            for one, other in itertools.combinations(hypotheses, 2):
                if len(one.ids) == len(other.ids) and one.score < other.score - 1e-3:
                    return Failed(f"sentence {sentence}: {one.ids} of score {one.score:.4f} comes before {other.ids} "
                                  f"of score {other.score:.4f}")  # fmt: skip
    return Passed()


@check(
    "search",
    invariant="a sentence has one hypothesis at least, and `nbest` at most",
    consequence="`translate --nbest` shows other numbers of outputs than were asked for",
    hint="`nbest`, which the constructor sets from its options",
)
def counts(subject: ComponentUnderTest) -> Result:
    nbest = subject.build().nbest
    for hypotheses in hypotheses_of(subject, TableDecoding(MAX_LENGTHS)):
        if not 1 <= len(hypotheses) <= nbest:
            return Failed(f"a sentence has {len(hypotheses)} hypotheses, and `nbest` is {nbest}")
    return Passed()


@check(
    "search",
    invariant="hypotheses of a sentence differ from each other, unless they are drawn",
    consequence="a beam of five is one output five times: greedy search at five times its price",
    hint="at the first step all beams of a sentence are alike: let only one of them grow, the others at −1e30; outputs "
    "that are entered twice",
)
def differing(subject: ComponentUnderTest) -> Result:
    if subject.build().nbest == 1:
        return Skip("a sentence has one hypothesis (`nbest` is 1)")
    for ending in (0.0, 1.0, NO_END):
        outputs = ids_of(hypotheses_of(subject, TableDecoding(MAX_LENGTHS, ending=ending)))
        if is_drawn(subject, MAX_LENGTHS, ending, outputs):
            return Skip("its outputs are drawn: the same one may come twice")
        for sentence, hypotheses in enumerate(outputs):
            for ids in hypotheses:
                if (count := hypotheses.count(ids)) > 1:
                    return Failed(f"sentence {sentence}: {count} of {len(hypotheses)} hypotheses are {ids}")
    return Passed()


@check(
    "search",
    invariant="a search with several hypotheses finds, on average, likelier ones than greedy search",
    consequence="it costs several times as much as greedy search, and its outputs are worse",
    hint="candidates are ranked by the sum over all their tokens, not by the last one; the best survive; all beams of "
    "a sentence grow, each from its own cache",
)
def likelier_than_greedy(subject: ComponentUnderTest) -> Result:
    if subject.build().nbest == 1:
        return Skip("a sentence has one hypothesis (`nbest` is 1)")
    table = TableDecoding([COMPARED_LENGTH] * COMPARED, ending=NO_END)
    outputs = hypotheses_of(subject, table)
    if is_drawn(subject, table.max_lengths, NO_END, ids_of(outputs)):
        return Skip("its outputs are drawn")
    ours = np.mean([table.summed(i, each[0].ids)[0] for i, each in enumerate(outputs)])
    greedy = np.mean([table.summed(i, table.likeliest(i))[0] for i in range(COMPARED)])
    if ours < greedy - 1e-3:
        return Failed(
            f"{COMPARED} outputs of {COMPARED_LENGTH} tokens and the end have {ours:.2f} nats on average, those of "
            f"greedy search {greedy:.2f}"
        )
    return Passed()


@check(
    "search",
    invariant="with `decoding.wanted` 1 the best output is the same",
    consequence="`translate` shows another output than `translate --nbest 5` shows first",
    hint="`wanted` of the best are returned, not of the last; it may end a search early, and change nothing of it",
)
def wanted(subject: ComponentUnderTest) -> Result:
    for ending in (NO_END, 0.0, 1.0):  # the likelier an end, the more outputs end before the best one
        tables = [TableDecoding(MAX_LENGTHS, ending=ending) for _ in range(2)]
        tables[1].wanted = 1
        for sentence, (every, best) in enumerate(zip(*(hypotheses_of(subject, table) for table in tables))):
            if not best or best[0].ids != every[0].ids:
                seen = best[0].ids if best else "nothing"
                return Failed(
                    f"sentence {sentence}: with `wanted` 1 the first output is {seen}, without it {every[0].ids}"
                )
    return Passed()


@check(
    "search",
    invariant="draws of successive steps are independent",
    consequence="outputs are likely throughout or unlikely throughout; mixtures are never drawn",
    hint="a draw keyed by the sentence and not by the step; a generator that is made again at each step from one seed",
)
def fresh_draws(subject: ComponentUnderTest) -> Result:
    alike = [number * ALIKE for number in range(DRAWN)]
    table = TableDecoding([2] * DRAWN, alike, NO_END)
    outputs = [tuple(each[0].ids[:2]) for each in hypotheses_of(subject, table)]
    if len({*outputs}) == 1:
        return Skip("it draws nothing")
    whole = [ids for ids in outputs if len(ids) == 2]
    places = [[_place(table.next(0, ids[:i]), ids[i]) for i in range(2)] for ids in whole]
    for order in range(2):
        first, second = np.array([[each[order] for each in place] for place in places]).reshape(-1, 2).T
        if min(np.ptp(first), np.ptp(second)) > 0 and abs(np.corrcoef(first, second)[0, 1]) > MAX_CORRELATION:
            correlation = np.corrcoef(first, second)[0, 1]
            return Failed(f"of {len(whole)} outputs of one sentence, first and second draw have a correlation of "
                          f"{correlation:.2f}")  # fmt: skip
    return Passed()


def _place(log_probs: np.ndarray, token: int) -> tuple[float, float]:
    """Where a token lies in the distribution, from 0 to 1: in the order of ids, and from the likeliest on."""
    p = np.exp(log_probs.astype("float64"))
    order = np.argsort(-p, kind="stable")
    before = float(p[order[: int(np.flatnonzero(order == token)[0])]].sum())
    return float(p[:token].sum() + p[token] / 2), before + float(p[token]) / 2


@check(
    "search",
    invariant="with the options that `greedy_with` names, it takes the likeliest token at each step",
    consequence="a beam of one is worse than greedy search",
    hint="`greedy_with`; what a beam of one does when its best token is the end; ties: the first of equals",
)
def greedy(subject: ComponentUnderTest) -> Result:
    if subject.cls.greedy_with is None:
        return Skip("it does not say that it is ever greedy (`greedy_with`)")
    options = {**subject.spec, **subject.cls.greedy_with}
    for ending in (0.0, 1.0, 3.0):
        table = TableDecoding(MAX_LENGTHS, ending=ending)
        with randomness.random_context(1, 1):
            outputs = subject.registry.build(subject.kind, options).run(table)
        for sentence, hypotheses in enumerate(outputs):
            expected = table.likeliest(sentence)
            if hypotheses[0].ids != expected:
                return Failed(f"sentence {sentence}: {hypotheses[0].ids}, the likeliest tokens are {expected}")
    return Passed()
