"""Tables: on a page of any width every value stands whole, and what is dropped is the least important."""

import csv
import io
import unicodedata

import pytest

from paddle_tfm.tabular import ESSENTIAL, Column, Table, column, wrapped

ROWS = [
    {
        "name": "post-layer",
        "score": "99.6% ± 0.1",
        "verdict": "undetermined",
        "size": "285,342",
        "what": "a norm after",
    },
    {
        "name": "预归一化",
        "score": "9.6% ± 10.1",
        "verdict": "worse",
        "size": "5",
        "what": "在每个子层之前归一化，因此残差不变",
    },
]
IMPORTANCE = {"name": ESSENTIAL, "score": ESSENTIAL, "verdict": ESSENTIAL, "size": 50, "what": 60}


def table(**changes) -> Table:
    columns = [
        column(key, importance=IMPORTANCE[key], right=key in ("score", "size"), prose=key == "what")
        for key in IMPORTANCE
    ]
    return Table(columns, ROWS, **changes)


def cells_of(text: str) -> int:
    """The width of a text on a terminal, by Unicode's own property."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def page(width: int | None, of: Table | None = None) -> list[str]:
    return ["".join(part for part, _ in line) for line in (of or table()).lines(width)]


@pytest.mark.parametrize("width", [*range(20, 100, 8), None])
def test_no_value_is_cut_and_no_line_is_too_long_or_padded(width):
    lines = page(width)
    text = "\n".join(lines)
    for row in ROWS:
        for key in ("name", "score", "verdict"):  # whole, on one line
            assert row[key] in text
    assert all(line == line.rstrip() for line in lines)
    if width is not None:
        assert max(map(cells_of, lines)) <= max(width, 30)  # a block has a heading and a value


@pytest.mark.parametrize("width", range(30, 100, 7))
def test_a_wider_page_drops_less_and_the_least_important_first(width):
    narrow, wide = table(), table()
    list(narrow.lines(width)), list(wide.lines(width + 1))
    assert set(wide.dropped) <= set(narrow.dropped)
    kept = [each for each in IMPORTANCE if each not in narrow.dropped]
    assert all(IMPORTANCE[gone] <= min(map(IMPORTANCE.get, kept)) for gone in narrow.dropped)


def test_prose_is_broken_between_words_and_chinese_between_characters():
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("incomprehensible a", 4) == ["incomprehensible", "a"]
    assert wrapped("归一化位置", 4) == ["归一", "化位", "置"]
    lines = page(72)
    assert len(lines) > 3 and "".join(line.split()[-1] for line in lines[2:]).startswith("在每个子层")


def test_numbers_stand_under_each_other_to_the_right():
    head, first, second = page(None)
    end = cells_of(first[: first.index("99.6% ± 0.1")]) + len("99.6% ± 0.1")
    assert cells_of(second[: second.index("9.6% ± 10.1")]) + len("9.6% ± 10.1") == end
    assert cells_of(head[: head.index("score")]) + len("score") == end


def test_a_line_feed_within_a_value_does_not_break_the_table():
    of = Table([column("name"), column("what")], [{"name": "a\nb", "what": "c\td"}])
    assert page(None, of) == ["name  what", "a b   c d"]


def test_csv_has_every_column_whatever_the_width_and_reads_back():
    of = table()
    list(of.lines(30))
    assert of.dropped
    assert list(csv.DictReader(io.StringIO(of.csv()))) == ROWS


def test_a_column_may_hold_several_values_for_programs():
    ends = Column("interval", lambda row: f"{row[0]} to {row[1]}", lambda row: {"low": row[0], "high": row[1]})
    of = Table([ends], [(1.5, 2.0), (None, [1, 2])])
    assert of.records() == [{"low": 1.5, "high": 2.0}, {"low": None, "high": [1, 2]}]
    assert of.csv() == "low,high\n1.5,2.0\n,1 2\n"
