"""Language identification: labels, lengths, splits."""

import pytest

from paddle_tfm.data.task import SPLITS, Dataset, Example
from paddle_tfm_plugins.task.language import Language


class Two(Dataset):
    languages = ("en", "zh")

    def examples(self, split):
        yield Example(f"one two three four {split}", "一二三四")
        yield Example("alone", "五")


def test_each_pair_gives_one_example_for_each_side():
    found = list(Language([Two(), Two()]).examples("test"))
    assert found[:4] == [
        Example("one two three four test", "en"),
        Example("一二三四", "zh"),
        Example("alone", "en"),
        Example("五", "zh"),
    ]
    assert found[4:] == found[:4]


@pytest.mark.parametrize("words", [[1, 1], [2, 3], [9, 9]])
def test_texts_are_cut_to_their_first_words(words):
    task = Language([Two()], words)
    for split in SPLITS:
        whole, cut = list(Language([Two()]).examples(split)), list(task.examples(split))
        assert cut == list(task.examples(split))
        for text, part in zip(whole, cut, strict=True):
            units = part.source.split() if " " in text.source else list(part.source)
            available = len(text.source.split()) if " " in text.source else len(text.source)
            assert text.source.startswith(part.source)
            assert min(words[0], available) <= len(units) <= words[1]


def test_options_are_checked():
    with pytest.raises(ValueError, match="`words` must be two numbers"):
        Language([Two()], [3, 1])
    with pytest.raises(ValueError, match="`datasets` must be of texts in languages, but Dataset is not"):
        Language([Dataset()])
