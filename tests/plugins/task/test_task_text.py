"""Running text: blocks that put together are the text, lines that end, splits of a file, and every complaint."""

from itertools import pairwise

import pytest

from paddle_tfm import UserError, create_registry
from paddle_tfm.protocols import SPLITS, Dataset, Example, Excerpt
from paddle_tfm_plugins.task.text import Text, blocks

LINES = ["A man in a blue shirt.", "Two dogs run.", "Two dogs run.", "", "extraordinarily", "一二三四五六七八九十"]
WHOLE = "A man in a blue shirt.\nTwo dogs run.\nextraordinarily\n一二三四五六七八九十\n"


class Given(Dataset):
    def read(self, split, paths):
        yield from (Example(f"{split} one", "eins"), Example(f"{split} one", "noch eins"), Example("two", "zwei"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    return tmp_path


def numbered(count):
    """Lines in which no five characters come twice."""
    return [" ".join(f"{10 * line + word:03d}" for word in range(5)) for line in range(count)]


@pytest.mark.parametrize("size", range(1, 24))
def test_blocks_put_together_are_the_text(size):
    parts = list(blocks(numbered(8), size))
    assert "".join(parts) == "".join(f"{line}\n" for line in numbered(8))
    assert all(0 < len(block) <= size for block in parts)
    if size > 4:  # longer than a word: none is cut
        assert all(block[:1].isspace() or before[-1:].isspace() for before, block in pairwise(parts))


@pytest.mark.parametrize("size, stride", [(10, 5), (10, 1), (7, 7), (3, 2), (20, 9), (200, 3)])
def test_blocks_with_a_stride_overlap_and_leave_nothing_out(size, stride):
    whole = "".join(f"{line}\n" for line in numbered(8))
    begin = end = 0
    for number, block in enumerate(blocks(numbered(8), size, stride)):
        before, begin = begin, whole.index(block, begin if size < 5 else 0)
        assert 0 < len(block) <= size
        assert begin <= end, "nothing lies between two blocks"
        assert number == 0 or size < 5 or before < begin <= max(before + stride + 4, end)
        end = max(end, begin + len(block))
    assert end == len(whole)


def test_a_word_longer_than_a_block_is_cut():
    assert list(blocks(["extraordinarily so on"], 6)) == ["extrao", "rdinar", "ily so", " on\n"]
    assert list(blocks(["一二三四五"], 2)) == ["一二", "三四", "五\n"]
    assert list(blocks(["一二三四五"], 2, 1)) == ["一二", "二三", "三四", "四五", "五\n"]


def test_lines_are_examples_that_end_and_blocks_are_not(folder):
    lines = list(Text(train="a.txt", valid="a.txt").examples("train"))
    assert lines == [Example("", line) for line in ("A man in a blue shirt.", "Two dogs run.", *LINES[4:])]
    assert all(example.ends for example in lines)
    parts = list(Text(train="a.txt", valid="a.txt", block=30).examples("train"))
    assert "".join(part.target for part in parts) == WHOLE
    assert {type(part) for part in parts} == {Excerpt} and not any(part.ends for part in parts)


def test_only_training_overlaps(folder):
    task = Text(train="a.txt", valid="a.txt", test="a.txt", block=10, stride=5)
    train, valid, test = (list(task.examples(split)) for split in SPLITS)
    assert "".join(part.target for part in valid) == WHOLE and valid == test
    assert len(train) > 1.4 * len(valid)


def test_the_end_of_a_file_is_held_out(folder):
    (folder / "b.txt").write_text("".join(f"line {i}\n" for i in range(20)), "utf-8")
    task = Text(train="b.txt", valid=0.1)
    assert [example.target for example in task.examples("valid")] == ["line 18", "line 19"]
    assert [example.target for example in task.examples("train")] == [f"line {i}" for i in range(18)]
    assert list(task.examples("test")) == []


def test_a_side_of_a_dataset():
    assert [each.target for each in Text(Given()).examples("valid")] == ["valid one", "two"]
    assert [each.target for each in Text(Given(), side="target").examples("test")] == ["eins", "noch eins", "zwei"]


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({}, "either `dataset` or `train`"),
        ({"train": "a.txt"}, "`valid` must be a file, or the share"),
        ({"train": "a.txt", "valid": 1.5}, "between 0 and 1, but is 1.5"),
        ({"dataset": Given(), "valid": 0.1}, "`dataset` has splits of its own"),
        ({"dataset": Given(), "train": "a.txt"}, "either"),
        ({"dataset": Given(), "block": 0}, "`block` must be positive, but is 0"),
        ({"dataset": Given(), "stride": 3}, "`stride` must be from 1 to `block`=None"),
        ({"dataset": Given(), "block": 4, "stride": 5}, "`stride` must be from 1 to `block`=4, but is 5"),
    ],
)
def test_options_are_checked(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Text(**options)


def test_files_are_complained_of(folder):
    with pytest.raises(UserError, match=r"nowhere\.txt: no such file"):
        list(Text(train="nowhere.txt", valid=0.1).examples("train"))
    problems = (
        create_registry().resolve("task", {"name": "text", "side": "left", "train": "a", "valid": 0.5}, "task").problems
    )
    assert [problem.path for problem in problems] == ["task.side"]
