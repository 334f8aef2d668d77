"""Questions whose answers stand in the text."""

import re

import pytest

from paddle_tfm.protocols import SPLITS
from paddle_tfm_plugins.task.questions import ROLES, VERBS, Questions

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


def test_no_two_splits_share_a_name(splits):
    names = {split: {name for e in of for name in re.findall(r"\w+", e.target)} for split, of in splits.items()}
    assert not names["train"] & names["test"] and not names["train"] & names["valid"]
    assert not names["valid"] & names["test"] and min(map(len, names.values())) > 200
