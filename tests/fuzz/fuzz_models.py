"""What needs Paddle of what is fuzzed: batches beside their examples, searches beside brute force."""

import itertools
import math
from collections import Counter

import numpy as np
import paddle

from paddle_tfm.data.batches import Stream, in_order
from paddle_tfm.data.codec import Encoded, EncodedTexts
from paddle_tfm.data.vocabulary import BOS, EOS
from paddle_tfm.protocols import MASKED_SCORE, Constraints, Decoding, Example
from paddle_tfm.search.constraints import Constrained
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy

# ----------------------------------------------------------------------------------------------------------- batches


class _Given:
    """A codec whose examples are encoded already."""

    class Side:
        sampling = False

    source = target = Side()

    def encode(self, encoded, rng=None):
        return encoded

    def lengths(self, encoded):
        return len(encoded.source), len(encoded.target)


def check_batches(draws):
    """Every epoch has each example once, whatever budget, order and seed; each row is its example and padding behind
    it; no batch of several rows is over the budget; and a stream continues from where another one stood."""
    budget, seed, rows = 1 + draws.number(64), draws.number(256), 1 + draws.number(5)
    encoded = [_encoded(draws, number) for number in range(1 + draws.number(24))]
    longest = [max(len(each.source), len(each.target)) for each in encoded]
    limit = None if rows == 5 else rows
    _check_all(list(in_order(encoded, budget, limit)), encoded, budget, limit)
    texts = EncodedTexts(_Given(), encoded)
    for way in ("by_length", "mixed"):
        stream, epochs = Stream(texts, budget, seed, None, way), [[], []]
        for epoch in epochs:
            while sum(len(batch.index) for batch in epoch) < len(encoded):
                epoch.append(next(stream))
            _check_all(epoch, encoded, budget, None)
        again = Stream(texts, budget, seed, None, way)
        again.epoch, again.position = 1, draws.number(len(epochs[1]))
        batch = next(again)
        assert batch.index.tolist() == epochs[1][again.position - 1].index.tolist()
        planned = list(itertools.islice(stream.planned_tokens(), len(epochs[0])))
        assert planned == [batch.tokens for batch in epochs[0]]
        real = sum(len(each.source) + len(each.target) for each in encoded)
        padded = sum(batch.source.size + batch.target_out.size for batch in epochs[0])
        assert math.isclose(stream.padding(), 1 - real / padded, abs_tol=1e-12), longest


def _encoded(draws, number):
    pieces = [[4 + draws.number(9) for _ in range(draws.number(12))] for _ in range(2)]
    extra = tuple(f"word{i}" for i in range(draws.number(3)))
    copied = [13 + draws.number(len(extra)) if extra else piece for piece in pieces[1]]
    source, target, target_copy = [*pieces[0], EOS], [*pieces[1], EOS], [*copied, EOS]
    return Encoded(Example(str(number), ""), source, source, target, target_copy, extra)


def _check_all(several, encoded, budget, limit):
    assert Counter(i for batch in several for i in batch.index.tolist()) == Counter(range(len(encoded)))
    for batch in several:
        width = max(batch.source.shape[1], batch.target_out.shape[1])
        assert len(batch.index) == 1 or len(batch.index) * width <= budget
        assert limit is None or len(batch.index) <= limit
        assert batch.extra == max(len(encoded[i].extra) for i in batch.index)
        assert batch.tokens == sum(len(encoded[i].target) for i in batch.index)
        _check_rows(batch, encoded)
        wider = batch.padded(3)
        assert wider.source.shape[1] == batch.source.shape[1] + 3
        _check_rows(wider, encoded)


def _check_rows(batch, encoded):
    for row, i in enumerate(batch.index.tolist()):
        one = encoded[i]
        inputs = [BOS, *one.target[:-1]]
        sides = (
            ("source", one.source, len(one.source)),
            ("copy_ids", one.copy, len(one.source)),
            ("target_in", inputs, len(one.target)),
            ("target_out", one.target, len(one.target)),
            ("target_copy", one.target_copy, len(one.target)),
            ("source_valid", [True] * len(one.source), len(one.source)),
            ("target_valid", [True] * len(one.target), len(one.target)),
        )
        for name, expected, length in sides:
            values = getattr(batch, name)[row].tolist()
            assert values[:length] == expected and not any(values[length:]), (name, values, expected)  # padding is 0


# ---------------------------------------------------------------------------------------------------------- searches


def check_searches(draws):
    """A wide beam over a table of probabilities finds what brute force finds, with its scores; of a narrow beam and of
    greedy search each output has its true score; and no constraint is broken."""
    limit, alpha = 1 + draws.number(3), draws.number(4) / 2
    constraints = Constraints(min_length=draws.number(3), no_repeat_ngram=draws.number(3))
    table = _Table([limit, 1 + draws.number(3)], draws)
    for wide, chosen in ((True, Beam(size=200, alpha=alpha)), (False, Beam(size=2, alpha=alpha)), (False, Greedy())):
        table.begin()
        for sentence, found in enumerate(chosen.run(Constrained(table, constraints, [[], []]))):
            every = table.every_output(sentence, constraints)
            outputs = [tuple(hypothesis.ids) for hypothesis in found]
            assert outputs and len(set(outputs)) == len(outputs)
            assert set(outputs) <= every.keys(), (outputs, constraints, every)
            for ids, score in found:
                assert math.isclose(score, every[tuple(ids)], rel_tol=1e-4, abs_tol=1e-4)
            if wide:
                ranked = sorted(every, key=lambda ids: -every[ids] / chosen.penalty(len(ids) + 1))
                for mine, best in zip(outputs, ranked):  # of equals, either
                    one, other = (every[ids] / chosen.penalty(len(ids) + 1) for ids in (mine, best))
                    assert math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4), (outputs, ranked)
                assert len(outputs) == len(every)


class _Table(Decoding):
    """log p(next | sentence, last token, step), by bytes: a token of weight 0 is impossible; the end never is."""

    bos, eos = BOS, EOS
    WORDS = (3, 4, 5)

    def __init__(self, max_lengths, draws):
        self.max_lengths, self.sentences = max_lengths, list(range(len(max_lengths)))
        size = (len(max_lengths), max(max_lengths) + 1, 6)
        weights = np.zeros((*size, 6))
        for place in itertools.product(*map(range, size)):
            weights[place][list(self.WORDS)] = [draws.number(8) for _ in self.WORDS]
            weights[place][EOS] = 1 + draws.number(8)
        with np.errstate(divide="ignore"):
            log_probs = np.log(weights / weights.sum(-1, keepdims=True))
        self.log_probs = np.where(weights > 0, log_probs, MASKED_SCORE)

    def begin(self):
        self.rows = [(sentence, -1) for sentence in self.sentences]

    def advance(self, tokens):
        self.rows = [(sentence, step + 1) for sentence, step in self.rows]
        found = [self.log_probs[sentence, step, token] for (sentence, step), token in zip(self.rows, tokens.tolist())]
        return paddle.to_tensor(np.stack(found), dtype="float32")

    def select(self, rows):
        self.rows = [self.rows[row] for row in rows.tolist()]

    def every_output(self, sentence, constraints):
        """All outputs that are possible → their log-probability with that of the end."""
        limit, found = self.max_lengths[sentence], {}
        shortest = min([constraints.min_length, *self.max_lengths])

        def grow(ids, score):
            step, last = len(ids), ids[-1] if ids else BOS
            log_probs = self.log_probs[sentence, step, last]
            words = [word for word in self.WORDS if log_probs[word] > MASKED_SCORE / 2 and not repeats([*ids, word])]
            if step == limit or step >= shortest or not words:
                found[tuple(ids)] = score + log_probs[EOS]
            if step < limit:
                for word in words:
                    grow([*ids, word], score + log_probs[word])

        def repeats(ids):
            n = constraints.no_repeat_ngram
            runs = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)] if n else []
            return len(runs) > len(set(runs))

        grow([], 0.0)
        return found
