"""Pairs out of files, and every complaint about them word for word."""

import gzip
import json
import os
import tracemalloc
from collections import Counter

import pytest

from paddle_tfm import create_registry
from paddle_tfm.data.pairs import Files
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.protocols import Dataset, Example
from paddle_tfm_plugins.task.parallel import Parallel

HELD = ["3", "9", "16"]  # those of 0 … 39 whose BLAKE2b of eight bytes, read as little-endian numbers, are the least


def read(task, split="train"):
    return [(each.source, *each.references) for each in task.examples(split)]


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


def test_two_files(folder):
    (folder / "a.en").write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo\xe2\x80\xa8lines\r\nthree")  # BOM, CRLF, U+2028
    (folder / "a.de").write_text("eins\n\nzwei\ndrei\n", "utf-8")
    assert read(Parallel(["a.en", "a.de"])) == [("one", "eins"), ("two\u2028lines", "zwei"), ("three", "drei")]


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


def test_one_side_empty_in_two_files(folder):
    (folder / "a").write_text("a\nb\n\n", "utf-8")
    (folder / "b").write_text("a\nb\nc\n", "utf-8")
    for files, side in ((["a", "b"], "source"), (["b", "a"], "target")):
        found = f"{' and '.join(files)}: a side is empty in 1 of 3 pairs (line 3: the {side})"
        assert complaint(Parallel(files)) == f"{found}; mend them, or leave them out: `drop_empty: true`"
        task = Parallel(files, drop_empty=True)
        assert (read(task), task.remarks()) == ([("a", "a"), ("b", "b")], [])
        assert task.dropped() == {"drop_empty=true": 1} and not Parallel(files).dropped()


def test_several_references(folder):
    """The same three texts a source, however they lie."""
    rows = [("a", "b", "c", "d"), ("e", "f", "g", "h")]
    (folder / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    for name, texts in zip("0123", zip(*rows)):
        (folder / name).write_text("\n".join(texts) + "\n", "utf-8")
    lists = [{"s": source, "r": references} for source, *references in rows]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists), "utf-8")
    columns = ["s", "r.0", "r.1", "r.2"]
    for test in (["0", "1", "2", "3"], Files("t.tsv", columns=[0, 1, 2, 3]), Files("t.jsonl", columns=columns)):
        assert read(Parallel("t.tsv", 1, test), "test") == rows
    assert read(Parallel("t.tsv", 1, ["0", "1", "2"], reverse=True), "test") == [("b", "a"), ("f", "e")]
    lists[1]["r"].pop()
    (folder / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists), "utf-8")
    (folder / "short").write_text("d\n", "utf-8")
    (folder / "t.tsv").write_text("a\tb\tc\td\ne\tf\t\th\n", "utf-8")
    for test, sentence in (
        (["0", "1", "short"], "0 has 2 lines, but short has 1: line n of the one must translate line n of the other"),
        (Files("few.jsonl", columns=columns), "few.jsonl, line 2: `columns` asks for `r.2`, counted from 0, but there are 2 texts"),
        (Files("few.jsonl", columns=["s", "r"]), "few.jsonl, line 1: `r` is a list of 3; several references of a test are named: `columns: […, r.0, r.1, r.2]`"),
        (Files("t.tsv", columns=[0, 1, 2, 3]), "t.tsv: a side is empty in 1 of 2 pairs (line 2: reference 2); mend them, or leave them out: `drop_empty: true`"),
    ):  # fmt: skip
        assert complaint(Parallel("t.tsv", 1, test), "test") == sentence


def test_empty_sides_are_counted_and_the_first_named(folder):
    (folder / "a.tsv").write_text("\n".join(f"{i}\t{i if i % 2 else ''}" for i in range(100)), "utf-8")
    assert complaint(Parallel("a.tsv")).startswith(
        "a.tsv: a side is empty in 50 of 100 pairs (line 1: the target, line 3: the target, line 5: the target, "
        "line 7: the target, line 9: the target, …); "
    )


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
    assert complaint(Parallel(name)) == (
        f"{name}, line 2: not UTF-8 (byte 0xfc at 3); if it is text, name what reads it: `encoding: gb18030` reads "
        "“gr黱 c”, `encoding: latin-1` reads “grün c”"
    )
    assert read(Parallel(name, encoding="latin-1"))[1] == ("grün", "c")


def test_a_line_that_would_fill_the_memory(folder):
    """Few bytes of a .gz hold a line of any length."""
    with gzip.open(folder / "a.tsv.gz", "wb", compresslevel=1) as file:
        file.write(b"a\tb\n")
        for _ in range(110):
            file.write(b" " * 1_000_000)
    assert (folder / "a.tsv.gz").stat().st_size < 1_000_000
    sentence = "a.tsv.gz, line 2: has 100,000,000 bytes or more; is it lines of text?"
    assert complaint(Parallel("a.tsv.gz")) == sentence


def test_texts_that_are_hard_to_read_are_read(folder):
    """A byte order mark, CRLF, NUL, a line of 10 MB, right-to-left and combining characters, a line separator."""
    texts = ["\ufeffa", "b\x00c", "x " * 5_000_000 + "y", "\u202e\u0634 e\u0301", "d\u2028e"]
    (folder / "a.tsv").write_bytes("".join(f"{text}\t1\r\n" for text in texts).encode())
    pairs = [tuple(pair[:2]) for pair in read(Parallel("a.tsv"))]
    assert pairs == [("a", "1"), *((text, "1") for text in texts[1:])]


def test_missing(folder):
    (folder / "b").write_text("1\n", "utf-8")
    assert complaint(Parallel("a.tsv")) == f"a.tsv: no such file (looked in {folder})"
    assert complaint(Parallel(["b", "c"])) == f"c: no such file (looked in {folder})"


def test_cannot_be_read(folder):
    (folder / "b").mkdir()
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
        "task 'parallel' has no file for the split 'valid': give it the option `valid`, a file or how many pairs of "
        "`train` to hold out"
    )
    assert list(Parallel("a").examples("test")) == []  # a test split is not needed to train


def test_a_pipe_is_refused(folder):
    os.mkfifo("pipe")
    message = "pipe: a pipe, which can be read only once; write it to a file first"
    assert complaint(Parallel("pipe")) == message
    assert complaint(Parallel(["pipe", "pipe"])) == message


def test_files_are_streamed(folder):
    """A file of 4 MB is read, and pairs are held out of it, in less than one."""
    with gzip.open("a.tsv.gz", "wt", compresslevel=1) as file:
        for i in range(10_000):
            file.write(f"source {i} {'x' * 190}\ttarget {i} {'y' * 190}\n")
    task = Parallel("a.tsv.gz", valid=100)
    tracemalloc.start()
    try:
        assert [sum(1 for _ in task.examples(split)) for split in ("train", "valid")] == [9_900, 100]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# -------------------------------------------------------------------------------------------------------------- several


def test_several_corpora_with_ratios(folder):
    (folder / "a.tsv").write_text("".join(f"a{i}\t{i}\n" for i in range(1000)))
    (folder / "b.csv").write_text("de;en\n" + "".join(f"{i};b{i}\n" for i in range(1000)))
    files = [{"files": "a.tsv", "ratio": 2.25}, {"files": "b.csv", "columns": ["en", "de"], "ratio": 0.5}]
    task = create_registry().build("task", {"name": "parallel", "train": files, "valid": 100}, "task")
    train, held = read(task), read(task, "valid")
    assert 100 <= len(held) == len(set(held)) <= 102
    assert not {source for source, _ in train} & {source for source, _ in held}
    times = Counter(pair for pair in train if pair[0].startswith("a"))
    assert (set(times.values()), 200 <= list(times.values()).count(3) <= 280) == ({2, 3}, True)
    assert 420 <= len([pair for pair in train if pair[0].startswith("b")]) <= 520
    assert train == read(task)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"files": "a", "ratio": 0}, "`ratio` of a must be above 0 and at most 1000, but is 0.0"),
        ({"files": ["a"]}, "`train` must be one file or two, but has 1"),
        ({"files": "a", "ratios": 2}, "has the unknown key 'ratios'; known: files, ratio, columns"),
    ],
)
def test_a_list_of_corpora_that_is_wrong(files, sentence):
    with pytest.raises(RecipeError, match=sentence):
        create_registry().build("task", {"name": "parallel", "train": [files], "valid": 1}, "task")


# ----------------------------------------------------------------------------------------------------------- JSON lines


def test_json_lines(folder):
    lines = [
        '{"source": "one", "target": "eins", "id": 7}',
        "",
        '{"source": " ", "target": ""}',
        '{"target": "zwei", "source": " two "}',
    ]
    (folder / "a.jsonl").write_text("\n".join(lines), "utf-8")
    (folder / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    for name in ("a.jsonl", "a.jsonl.gz"):
        assert read(Parallel(name)) == [("one", "eins"), ("two", "zwei")]
    assert read(Parallel("a.jsonl", reverse=True))[0] == ("eins", "one")


def test_json_keys(folder):
    (folder / "a.jsonl").write_text(
        '{"translation": {"en": "a\\tb\\nc", "de": "x"}, "a.b": "flat", "a": {"b": "deep"}}\n'
    )
    assert read(Parallel("a.jsonl", columns=["translation.en", "translation.de"])) == [("a b c", "x")]
    assert read(Parallel("a.jsonl", columns=["translation.de", "a.b"])) == [("x", "flat")]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"source": "a"', "not JSON: Expecting ',' delimiter: line 2 column 1 (char 15)"),
        ('["a", "b"]', "must hold an object with `source`, but holds \"['a', 'b']\""),
        ('{"source": "a", "Target": "b"}', "unknown key 'target'; did you mean 'Target'? Known: Target, source"),
        ('{"source": 3, "target": "b"}', "`source` must be a text, but is 3"),
        ('{"source": "a\\ud800", "target": "b"}', "`source` holds half of a surrogate pair, which is no character"),
    ],
)
def test_bad_json(folder, line, text):
    (folder / "a.jsonl").write_text('{"source": "a", "target": "b"}\n' + line + "\n", "utf-8")
    message = complaint(Parallel("a.jsonl"))
    assert message.startswith(f"a.jsonl, line 2: {text}")


# ------------------------------------------------------------------------------------------------------------- held out


def numbered(folder, count=2000, copies=1):
    (folder / "a.tsv").write_text(
        "".join(f"{i}\t{i}.{copy}\n" for copy in range(copies) for i in range(count)), "utf-8"
    )


@pytest.mark.parametrize(("valid", "test", "least", "most"), [(30, 50, 46, 54), (0.1, 0.3, 450, 750)])
def test_a_test_split_is_held_out_beside_valid(folder, valid, test, least, most):
    numbered(folder, 500, copies=4)
    task = Parallel("a.tsv", valid, test)
    train, held, tested = splits = [read(task, split) for split in ("train", "valid", "test")]
    assert sorted(train + held + tested) == sorted(read(Parallel("a.tsv")))
    assert least <= len(tested) <= most
    sources = [{source for source, _ in split} for split in splits]
    assert sum(map(len, sources)) == 500  # equal sources stay together
    assert held == read(Parallel("a.tsv", valid), "valid")


@pytest.mark.parametrize(("valid", "least", "most"), [(1, 1, 1), (150, 150, 150), (0.05, 80, 120), (0.5, 950, 1050)])
def test_valid_is_held_out_of_train(folder, valid, least, most):
    numbered(folder)
    task = Parallel("a.tsv", valid)
    train, held = read(task), read(task, "valid")
    assert sorted(train + held) == sorted(read(Parallel("a.tsv")))
    assert least <= len(held) <= most
    assert (read(task), read(Parallel("a.tsv", valid), "valid")) == (train, held)
    assert train == [pair for pair in read(Parallel("a.tsv")) if pair in {*train}]  # in the file's order
    assert list(task.examples("test")) == []


def test_both_directions_hold_out_the_same_and_more_holds_out_what_less_does(folder):
    numbered(folder)
    some, more = (read(Parallel("a.tsv", valid), "valid") for valid in (50, 60))
    assert {*some} < {*more}
    assert read(Parallel("a.tsv", 50, reverse=True), "valid") == [(target, source) for source, target in some]


def test_what_is_held_out_belongs_to_no_platform_or_run(folder):
    numbered(folder, 40)
    assert [source for source, _ in read(Parallel("a.tsv", 3), "valid")] == HELD


def test_too_much_is_held_out(folder):
    numbered(folder, 10)
    text = "a.tsv: 10 pairs, of which `valid: 10` leaves none to train on"
    assert complaint(Parallel("a.tsv", 10)) == complaint(Parallel("a.tsv", 10), "valid") == text
    assert complaint(Parallel("a.tsv", 1e-9), "valid") == (
        "a.tsv: no pair of texts in it that `valid: 1e-09` would hold out, but the split 'valid' needs one"
    )
    (folder / "b.tsv").write_text("same\tx\n" * 4)
    assert complaint(Parallel("b.tsv", 2)) == (
        "b.tsv: no pair of texts in it beside what `valid: 2` holds out, but the split 'train' needs one"
    )


# -------------------------------------------------------------------------------------------------------------- dataset


class Numbers(Dataset):
    """Splits of one example each."""

    def read(self, split, paths):
        yield Example(split, f"{split} target")


def test_a_dataset():
    assert [read(Parallel(dataset=Numbers()), split) for split in ("train", "valid", "test")] == [
        [("train", "train target")],
        [("valid", "valid target")],
        [("test", "test target")],
    ]
    assert read(Parallel(dataset=Numbers(), reverse=True)) == [("train target", "train")]


# -------------------------------------------------------------------------------------------------------------- options

ORIGIN = (
    "one of these must say where the pairs come from: `dataset`, a name of `paddle-tfm ls data`; `train`, a file or "
    "[file of sources, file of targets]; `pairs`, a list of [source, target]"
)
NUMBERS = "`columns` must be two numbers from 0 on, or two names, those of source and target, but is "

ONE_TARGET = (
    "but a training pair has one target; several references are for `valid` and `test`, with `columns` of their own: "
    "`test: {files: test.tsv, columns: [0, 1, 2]}`"
)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, ORIGIN),
        ({"train": ["a"]}, "`train` must be one file or two, but has 1"),
        ({"train": ["a"] * 3}, f"`train` has 3 files, {ONE_TARGET}"),
        ({"train": "a", "columns": [0, 1, 2], "test": "b"}, f"`train` has 3 columns, {ONE_TARGET}"),
        ({"train": "a", "columns": [0, -1]}, NUMBERS + "[0, -1]"),
        ({"train": "a", "columns": ["en", 1]}, NUMBERS + "['en', 1]"),
        ({"train": "a", "delimiter": ""}, "`delimiter` must be one character between the cells of a table, but is ''"),
        (
            {"train": "a", "encoding": "gb1803"},
            "`encoding` must be one of Python's text encodings, but is 'gb1803'; did you mean 'gb18030'?",
        ),
        ({"train": "a", "valid": 0}, "`valid` must be a file, a share, or a number of pairs from 1 on, but is 0"),
        ({"train": "a", "valid": 1.0}, "`valid` must be a share of `train` between 0 and 1, but is 1.0"),
        (
            {"train": "a", "valid": "v", "test": 0},
            "`test` must be a file, a share, or a number of pairs from 1 on, but is 0",
        ),
        (
            {"train": "a", "valid": 5, "test": 0.1},
            "`valid` and `test` must both be numbers of pairs, or both shares, but are 5 and 0.1",
        ),
        (
            {"train": "a", "valid": 0.5, "test": 0.5},
            "`valid` and `test` must leave a share of `train`, but are 0.5 and 0.5",
        ),
        ({"dataset": Numbers(), "train": "a"}, "`dataset` must stand alone, but `train` is given too"),
        ({"train": "a", "pairs": [["a", "b"]]}, "`pairs` must stand alone, but `train` is given too"),
        ({"pairs": []}, "`pairs` must hold at least one pair"),
        (
            {"pairs": [["a", "b"], ["c"]]},
            "`pairs` must hold a source and a target each, but number 2 is ['c']",
        ),
        ({"pairs": [["a", "b"]], "valid": "v"}, "`pairs` must stand alone, but `valid` is given too"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError) as caught:
        Parallel(**options)
    assert str(caught.value) == text
