"""Language identification: labels, lengths, splits."""

import pytest

from paddle_tfm.protocols import SPLITS, Dataset, Example
from paddle_tfm_plugins.task.language import Language


class Two(Dataset):
    languages = ("en", "zh")

    def read(self, split, paths):
        for i in range(200):
            yield Example(f"one{i} two three four {split}", f"{chr(0x4E00 + i)}二三四")
        yield Example("alone", "五")


def test_both_sides_of_all_pairs_are_somewhere_with_their_language():
    examples = [example for split in SPLITS for example in Language([Two()]).examples(split)]
    pairs = [pair for split in SPLITS for pair in Two().read(split, {})]
    expected = [Example(pair.source, "en") for pair in pairs] + [Example(pair.target, "zh") for pair in pairs]
    assert sorted(examples) == sorted(expected)


@pytest.mark.parametrize("words", [[1, 1], [1, 3], None])
def test_no_text_is_in_two_splits(words):
    """However short: the same word at the beginning of two sentences is one text."""
    splits = [{example.source for example in Language([Two()], words).examples(split)} for split in SPLITS]
    assert not splits[0] & splits[1] and not splits[0] & splits[2] and not splits[1] & splits[2]
    assert len(splits[0]) > 8 * len(splits[1]) > 0 < len(splits[2])


@pytest.mark.parametrize(("fewest", "most"), [(1, 1), (2, 3), (9, 9)])
def test_texts_are_cut_to_their_first_words(fewest, most):
    whole = {example.source for split in SPLITS for example in Language([Two()]).examples(split)}
    counts = set()
    for split in SPLITS:
        for source, language in ((e.source, e.target) for e in Language([Two()], [fewest, most]).examples(split)):
            units = list(source) if language == "zh" else source.split()
            assert any(text.startswith(source) for text in whole)
            assert len(units) <= most
            assert len(units) >= fewest or source in whole
            counts.add(len(units))
    assert {fewest, most} & counts or fewest == 9


def test_options_are_checked():
    with pytest.raises(ValueError, match="`words` must be two numbers"):
        Language([Two()], [3, 1])
    with pytest.raises(ValueError, match="`datasets` must be of texts in languages, but Dataset is not"):
        Language([Dataset()])
