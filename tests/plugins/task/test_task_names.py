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


def test_a_sentence_translated_by_hand():
    for source, target in (
        ("{a} met {b} at {place} {past}.", "{a} {past} 在 {place} 遇见 了 {b}。"),
        ("{a} is {more} than {b}.", "{a} 比 {b} {more}。"),
    ):
        assert (source, target) in TEMPLATES
    assert dict(WORDS["place"])["the airport"] == "机场" and dict(WORDS["more"])["taller"] == "高"
    translations = {example.source: example.target for example in Names(train=3000).examples("train")}
    hits = [(s, t) for s, t in translations.items() if " is taller than " in s]
    assert hits
    for source, target in hits:
        a, b = source.removesuffix(".").split(" is taller than ")
        assert target == f"{a} 比 {b} 高。"


def test_both_sides_of_a_sentence_have_the_same_fields_and_all_words_are_used(splits):
    for english, chinese in TEMPLATES:
        assert sorted(FIELD.findall(english)) == sorted(FIELD.findall(chinese))
        assert {"a", "b"} <= set(FIELD.findall(english)) <= {"a", "b", *WORDS}
    texts = " ".join(f"{example.source.lower()} {example.target}" for example in splits["train"])
    assert all(english in texts and chinese in texts for pairs in WORDS.values() for english, chinese in pairs)


def test_the_word_tokenizer_loses_nothing_and_cuts_names_alike_on_both_sides(splits):
    word = Word()
    for example in splits["test"]:
        left, right = word.tokenize(example.source), word.tokenize(example.target)
        assert word.detokenize(left) == example.source and word.detokenize(right) == example.target
        assert {f"▁{name}" for name in names(example)} <= set(left) & set(right)


@pytest.mark.parametrize("split", SPLITS)
def test_a_longer_split_begins_with_the_shorter(splits, split):
    long = Names(**{name: size + 50 for name, size in SMALL.items()})
    assert list(long.examples(split))[: SMALL[split]] == splits[split]


def test_the_seed_decides(splits):
    assert list(Names(**SMALL, data_seed=2).examples("test")) != splits["test"]
