"""Pairs out of files, and every complaint about them word for word."""

import gzip
import os
from pathlib import Path

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm_plugins.task.parallel import Parallel


def read(task, split="train"):
    return [(source, target) for source, target, _ in task.examples(split)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(task, split="train"):
    with pytest.raises(UserError) as caught:
        read(task, split)
    return str(caught.value)


def test_tsv(folder):
    (folder / "a.tsv").write_text("one\teins\textra\n\n \t \ntwo words\tzwei Worte\n", "utf-8")
    assert read(Parallel("a.tsv")) == [("one", "eins"), ("two words", "zwei Worte")]


def test_columns_and_reverse(folder):
    (folder / "a.tsv").write_text("7\teins\tone\n", "utf-8")
    assert read(Parallel("a.tsv", columns=[2, 1])) == [("one", "eins")]
    assert read(Parallel("a.tsv", columns=[2, 1], reverse=True)) == [("eins", "one")]


def test_two_files(folder):
    (folder / "a.en").write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo\xe2\x80\xa8lines\r\nthree")  # BOM, CRLF, U+2028
    (folder / "a.de").write_text("eins\n\nzwei\ndrei\n", "utf-8")
    assert read(Parallel(["a.en", "a.de"])) == [("one", "eins"), ("two\u2028lines", "zwei"), ("three", "drei")]


def test_gzip(folder):
    (folder / "a.en.gz").write_bytes(gzip.compress("größer\nb\n".encode()))
    (folder / "a.de").write_text("x\ny\n", "utf-8")
    assert read(Parallel("no.tsv", ["a.en.gz", "a.de"]), "valid") == [("größer", "x"), ("b", "y")]


def test_each_split_reads_its_own(folder):
    for name in ("train", "valid", "test"):
        (folder / f"{name}.tsv").write_text(f"{name}\tx\n", "utf-8")
    task = Parallel("train.tsv", "valid.tsv", str(folder / "test.tsv"))
    assert [read(task, split)[0][0] for split in ("train", "valid", "test")] == ["train", "valid", "test"]
    assert read(task) == read(task)


def test_pairs_in_the_recipe():
    task = Parallel(pairs=[["Hello.", "你好。"], ["Bye.", "再见。"]])
    for split in ("train", "valid", "test"):
        assert read(task, split) == [("Hello.", "你好。"), ("Bye.", "再见。")]
    assert read(Parallel(pairs=[["a", "b"]], reverse=True)) == [("b", "a")]


def test_no_tab(folder):
    (folder / "a.tsv").write_text("a\tb\n\nc d\n", "utf-8")
    assert complaint(Parallel("a.tsv")) == "a.tsv, line 3: no TAB between source and target"


def test_too_few_columns(folder):
    (folder / "a.tsv").write_text("a\tb\tc\na\tb\n", "utf-8")
    assert complaint(Parallel("a.tsv", columns=[0, 2])) == (
        "a.tsv, line 2: 2 columns, but `columns` asks for column 2, counted from 0"
    )


@pytest.mark.parametrize(("line", "side"), [("\tb", "source"), ("a\t ", "target")])
def test_one_side_empty(folder, line, side):
    (folder / "a.tsv").write_text(f"a\tb\n{line}\n", "utf-8")
    assert complaint(Parallel("a.tsv")) == f"a.tsv, line 2: the {side} is empty, but its other side is not"


def test_one_side_empty_in_two_files(folder):
    (folder / "a").write_text("a\nb\n\n", "utf-8")
    (folder / "b").write_text("a\nb\nc\n", "utf-8")
    assert complaint(Parallel(["a", "b"])) == "a, line 3: the source is empty, but its other side is not"
    assert complaint(Parallel(["b", "a"])) == "a, line 3: the target is empty, but its other side is not"


def test_unequal_numbers_of_lines(folder):
    (folder / "a").write_text("1\n2\n3\n", "utf-8")
    (folder / "b").write_text("1\n2\n", "utf-8")
    end = ": line n of the one must translate line n of the other"
    assert complaint(Parallel(["a", "b"])) == "a has 3 lines, but b has 2" + end
    assert complaint(Parallel(["b", "a"])) == "b has 2 lines, but a has 3" + end


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_not_utf8(folder, name):
    data = "a\tb\ngrün\tc\n".encode("latin-1")
    (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert complaint(Parallel(name)) == f"{name}, line 2: not UTF-8 (byte 0xfc at 3)"


def test_missing(folder):
    (folder / "b").write_text("1\n", "utf-8")
    assert complaint(Parallel("a.tsv")) == f"a.tsv: no such file (looked in {folder})"
    assert complaint(Parallel(["b", "c"])) == f"c: no such file (looked in {folder})"


def test_cannot_be_read(folder):
    (folder / "a.gz").write_bytes(b"plain text")
    (folder / "b").mkdir()
    assert complaint(Parallel("a.gz")) == "a.gz: cannot be read: Not a gzipped file (b'pl')"
    assert complaint(Parallel("b")).startswith("b: cannot be read: ")
    whole = gzip.compress(os.urandom(50_000).hex().encode())
    (folder / "c.gz").write_bytes(whole[: len(whole) // 2])
    assert "c.gz: cannot be read: Compressed file ended" in complaint(Parallel("c.gz"))


@pytest.mark.parametrize("text", ["", "\n\n \n"])
def test_empty(folder, text):
    (folder / "a").write_text(text, "utf-8")
    assert complaint(Parallel("a")) == "a: no pair of texts in it, but the split 'train' needs one"
    assert complaint(Parallel(["a", "a"])) == "a and a: no pair of texts in it, but the split 'train' needs one"


def test_a_split_without_file():
    assert complaint(Parallel("a"), "valid") == (
        "task 'parallel' has no file for the split 'valid': give it the option `valid`"
    )
    assert list(Parallel("a").examples("test")) == []  # a test split is not needed to train
    with pytest.raises(UserError, match="unknown split 'dev'"):
        Parallel("a").examples("dev")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "`train` must be a TSV file or [file of sources, file of targets]; or give `pairs`"),
        ({"train": ["a"]}, "`train` must be one TSV file or two files, but has 1"),
        ({"train": "a", "test": ["a"] * 3}, "`test` must be one TSV file or two files, but has 3"),
        (
            {"train": "a", "columns": [0]},
            "`columns` must be two numbers from 0 on, those of source and target, but is [0]",
        ),
        (
            {"train": "a", "columns": [0, -1]},
            "`columns` must be two numbers from 0 on, those of source and target, but is [0, -1]",
        ),
        ({"pairs": []}, "`pairs` must hold at least one pair"),
        (
            {"pairs": [["a", "b"], ["c"]]},
            "`pairs` must hold a source and a target each, but number 2 is ['c']",
        ),
        (
            {"pairs": [["a", " "]]},
            "`pairs` must hold a source and a target each, but number 1 is ['a', ' ']",
        ),
        ({"pairs": [["a", "b"]], "valid": "v"}, "`pairs` must stand alone, but `valid` is given too"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError) as caught:
        Parallel(**options)
    assert str(caught.value) == text


def miniature(folder):
    """Files as those of the real corpora, for where those are not."""
    (folder / "multi30k").mkdir()
    (folder / "tatoeba-en-zh").mkdir()
    for name, count in (("train", 29_000), ("test_2016_flickr", 1000)):
        for language, text in (("en", "Two young, White males."), ("de", "Zwei junge weiße Männer.")):
            data = gzip.compress(f"{text}\n".encode() * count)
            (folder / "multi30k" / f"{name}.{language}.gz").write_bytes(data)
    (folder / "tatoeba-en-zh" / "cmn.txt").write_text("Hi.\t嗨。\n" * 32_028, "utf-8")
    return folder


def test_corpora(tmp_path):
    """Those of `PADDLE_TFM_DATA`, or a miniature of the same layout."""
    data = Path(os.environ["PADDLE_TFM_DATA"]) if os.environ.get("PADDLE_TFM_DATA") else miniature(tmp_path)
    flickr = data / "multi30k"
    multi30k = Parallel(
        [str(flickr / "train.en.gz"), str(flickr / "train.de.gz")],
        test=[str(flickr / "test_2016_flickr.en.gz"), str(flickr / "test_2016_flickr.de.gz")],
    )
    assert len(read(multi30k)) == 29_000 and len(read(multi30k, "test")) == 1000
    assert read(multi30k)[0][1].startswith("Zwei junge weiße Männer")
    tatoeba = read(Parallel(str(data / "tatoeba-en-zh" / "cmn.txt")))
    assert tatoeba[0] == ("Hi.", "嗨。") and len(tatoeba) == 32_028
