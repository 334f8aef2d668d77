"""Positions that sort a sequence."""

from itertools import pairwise

import pytest

from paddle_tfm.data.vocabulary import SPECIAL, Vocabulary
from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.task.sort import Sort
from paddle_tfm_plugins.task.sort_indices import SortIndices
from paddle_tfm_plugins.tokenizer.word import Word

SMALL = {"symbols": 20, "min_length": 3, "max_length": 12, "train": 2000, "valid": 200, "test": 200}


def numbers(text):
    return [int(word) for word in text.split(" ")]


@pytest.mark.parametrize("split", SPLITS)
def test_reading_at_the_positions_gives_the_sequence_in_order(split):
    examples, sorted_too = list(SortIndices(**SMALL).examples(split)), list(Sort(**SMALL).examples(split))
    assert len(examples) == SMALL[split]
    for example, other in zip(examples, sorted_too):
        assert example.source == other.source
        sequence, places = numbers(example.source), numbers(example.target)
        assert sorted(places) == list(range(len(sequence)))
        assert [sequence[place] for place in places] == numbers(other.target)


def test_of_equal_numbers_the_first_comes_first():
    for source, target, *_ in SortIndices(**SMALL).examples("train"):
        sequence, places = numbers(source), numbers(target)
        assert all(a < b for a, b in pairwise(places) if sequence[a] == sequence[b])


@pytest.mark.parametrize(("shortest", "longest"), [(3, 12), (12, 12), (10, 11), (2, 9), (1, 120)])
def test_the_vocabulary_has_positions_in_their_order(shortest, longest):
    """Piece 4 + s is position s: what the head `pointer_network` takes it for."""
    task = SortIndices(symbols=1000, min_length=shortest, max_length=longest, train=3000)
    learned = Vocabulary.learn(Word().tokenize(example.target) for example in task.examples("train"))
    assert [int(piece.removeprefix("▁")) for piece in learned.pieces[len(SPECIAL) :]] == list(range(longest))
