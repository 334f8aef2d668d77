"""copy, reverse and sort."""

from itertools import pairwise

import pytest

from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.task.copy import Copy
from paddle_tfm_plugins.task.reverse import Reverse
from paddle_tfm_plugins.task.sort import Sort

TASKS = [Copy, Reverse, Sort]
SMALL = {"symbols": 12, "min_length": 3, "max_length": 5, "train": 2000, "valid": 300, "test": 300}


def numbers(text):
    return [int(word) for word in text.split(" ")]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_answers(task, split):
    examples = list(task(**SMALL).examples(split))
    assert len(examples) == SMALL[split]
    for source, target, *_ in examples:
        left, right = numbers(source), numbers(target)
        if task is Copy:
            assert left == right
        elif task is Reverse:
            assert [right[len(left) - 1 - i] for i in range(len(left))] == left
        else:
            assert sorted(left) == right and all(a <= b for a, b in pairwise(right))


@pytest.mark.parametrize("task", TASKS)
def test_range_and_lengths(task):
    rows = [numbers(source) for source, *_ in task(**SMALL).examples("train")]
    assert {number for row in rows for number in row} == set(range(1, 13))
    lengths = [len(row) for row in rows]
    assert all(lengths.count(length) > 500 for length in (3, 4, 5)) and set(lengths) == {3, 4, 5}


@pytest.mark.parametrize("split", SPLITS)
def test_sizes_do_not_matter(split):
    """The test split stays when more training data is asked for, and a longer split begins with the shorter."""
    long = Copy(**{**SMALL, "train": 3000, "valid": 350, "test": 350})
    head = list(Copy(**SMALL).examples(split))
    assert list(long.examples(split))[: len(head)] == head


def test_the_tasks_of_one_seed_read_the_same_sources():
    sources = [[source for source, *_ in task(**SMALL).examples("train")] for task in TASKS]
    assert sources[0] == sources[1] == sources[2]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"min_length": 0}, "`min_length` must be positive, but is 0"),
        ({"min_length": 4, "max_length": 3}, "`min_length` must not be above `max_length`, but 4 is above 3"),
        (
            {"symbols": 2, "min_length": 1, "max_length": 5},
            "`symbols` and the lengths must allow 100 sequences or more, but allow 62",
        ),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError) as caught:
        Copy(**options)
    assert str(caught.value) == text


@pytest.mark.parametrize("task", TASKS)
def test_the_test_split_may_have_other_lengths_and_the_others_keep_theirs(task):
    longer = task(**SMALL, test_min_length=7, test_max_length=8)
    for split in SPLITS:
        lengths = {len(numbers(source)) for source, *_ in longer.examples(split)}
        assert lengths == ({7, 8} if split == "test" else {3, 4, 5})
    for split in ("train", "valid"):
        assert list(longer.examples(split)) == list(task(**SMALL).examples(split))
    with pytest.raises(ValueError, match="test_min_length"):
        task(**SMALL, test_min_length=6)  # above the longest
