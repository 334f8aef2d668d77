"""Names that must be copied."""

import re
from collections import Counter

import pytest

from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.task.names import FIELD, TEMPLATES, WORDS, Names
from paddle_tfm_plugins.tokenizer.word import Word

SMALL = {"train": 1500, "valid": 200, "test": 200}
NAME = re.compile(r"(?:(?:[bdfgjklmnprstvwz]|br|dr|kl|tr)[aeiou]){2,3}[nrsl]?", re.IGNORECASE)


def words(text):
    return re.findall(r"[A-Za-z]+", text)


def names(example):
    """The words in Latin letters of the Chinese side."""
    return words(example.target)


@pytest.fixture(scope="module")
def splits():
    return {split: list(Names(**SMALL).examples(split)) for split in SPLITS}


@pytest.mark.parametrize("split", SPLITS)
def test_every_name_is_read_and_written(splits, split):
    assert len(splits[split]) == SMALL[split]
    for example in splits[split]:
        assert 2 <= len(names(example)) <= 4
        assert all(NAME.fullmatch(name) and name.istitle() for name in names(example))
        read = Counter(words(example.source))
        assert not Counter(names(example)) - read
        assert not [word for word in (read - Counter(names(example))) if NAME.fullmatch(word) and word.istitle()]


def test_no_two_splits_share_a_name(splits):
    names_of = {split: {name for example in examples for name in names(example)} for split, examples in splits.items()}
    assert (
        not names_of["train"] & names_of["test"]
        and not names_of["train"] & names_of["valid"]
        and not names_of["valid"] & names_of["test"]
    )
    assert min(map(len, names_of.values())) > 400


def test_names_are_rare_and_other_words_are_not(splits):
    """Ten occurrences tell them apart, as the recipe does."""
    counts = Counter(piece for example in splits["train"] for piece in Word().tokenize(example.source))
    distinct = {name for example in splits["train"] for name in names(example)}
    assert max(counts[f"▁{name}"] for name in distinct) < 5
    assert min(count for piece, count in counts.items() if piece[1:] not in distinct) > 10


def test_both_sides_of_a_sentence_have_the_same_fields_and_all_words_are_used(splits):
    for english, chinese in TEMPLATES:
        assert sorted(FIELD.findall(english)) == sorted(FIELD.findall(chinese))
        assert {"a", "b"} <= set(FIELD.findall(english)) <= {"a", "b", *WORDS}
    texts = " ".join(f"{example.source.lower()} {example.target}" for example in splits["train"])
    assert all(english in texts and chinese in texts for pairs in WORDS.values() for english, chinese in pairs)
