"""Restoring capitals and punctuation: a tag for each word."""

import pytest

from paddle_tfm.protocols import Dataset, Example
from paddle_tfm_plugins.task.truecase import Truecase, tag


@pytest.mark.parametrize(
    ("token", "word", "label"),
    [
        ("Mann,", "mann", "Cap,"), ("liest.", "liest", "low."), ("USA", "usa", "ALL"), ("iPhone", "iphone", "mix"),
        ("grün-weiß", "grün-weiß", "low"), ('"Nein!"', "nein", 'Cap!"'), ("2", "2", "low"), ("-", "", "low"),
        ("T-Shirt", "t-shirt", "Cap"), ("Ä", "ä", "Cap"),
    ],
)  # fmt: skip
def test_tags(token, word, label):
    assert tag(token) == (word, label)


class Given(Dataset):
    def read(self, split, paths):
        yield Example("x", "Ein Mann , der liest.")
        yield Example("x", "- !")


def test_source_and_target_are_equally_long():
    assert list(Truecase(Given()).examples("train")) == [Example("ein mann der liest", "Cap Cap low low.")]
