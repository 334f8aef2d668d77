"""Questions whose answers stand in the text."""

import re

import pytest

from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.task.questions import ROLES, VERBS, Questions
from paddle_tfm_plugins.tokenizer.word import Word

SMALL = {"train": 600, "valid": 100, "test": 100}
TOLD = {asked: told for told, asked in VERBS}


@pytest.fixture(scope="module")
def splits():
    return {split: list(Questions(**SMALL).examples(split)) for split in SPLITS}


def answered(source):
    """The answer, found by reading: another way than the one that wrote the text."""
    question, text = source.split("? ")
    role, verb = re.fullmatch(r"Whom did the (\w+) (\w+)", question).groups()
    (people,) = re.findall(rf"The {role} {TOLD[verb]} ([^.]+)\.", text)
    return re.sub(" and ", ", ", people)


@pytest.mark.parametrize("split", SPLITS)
def test_the_answer_stands_in_one_sentence_of_the_text(splits, split):
    assert len(splits[split]) == SMALL[split]
    for example in splits[split]:
        assert example.target == answered(example.source)
        assert example.source.count(".") == 3


def test_roles_and_verbs_do_not_answer_alone(splits):
    """Often another sentence has the same role, or the same verb, so that both must be read."""
    shared = {"role": 0, "verb": 0}
    for example in splits["train"]:
        role, verb = re.match(r"Whom did the (\w+) (\w+)", example.source).groups()
        shared["role"] += example.source.count(f"The {role} ") > 1
        shared["verb"] += example.source.count(f" {TOLD[verb]} ") > 1
    assert min(shared.values()) > 0.1 * len(splits["train"])
    assert {role for role in ROLES if any(f"the {role} " in e.source for e in splits["train"])} == set(ROLES)


def test_lists_have_every_length(splits):
    lengths = [example.target.count(",") + 1 for example in splits["train"]]
    assert all(lengths.count(length) > 0.2 * len(lengths) for length in (1, 2, 3, 4))


def test_no_two_splits_share_a_name(splits):
    names = {split: {name for e in of for name in re.findall(r"\w+", e.target)} for split, of in splits.items()}
    assert not names["train"] & names["test"] and not names["train"] & names["valid"]
    assert not names["valid"] & names["test"] and min(map(len, names.values())) > 200


def test_every_piece_of_an_answer_is_one_of_its_text(splits):
    """So that it can be copied."""
    word = Word()
    for example in splits["test"]:
        pieces = set(word.tokenize(example.source))
        assert {piece for piece in word.tokenize(example.target) if piece[-1].isalpha()} <= pieces


def test_a_longer_split_begins_with_the_shorter_and_the_seed_decides(splits):
    longer = Questions(train=650, valid=100, test=100)
    assert list(longer.examples("train"))[:600] == splits["train"]
    assert list(Questions(**SMALL, data_seed=2).examples("train")) != splits["train"]
