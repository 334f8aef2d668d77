"""Tables for people and for programs: columns that know how much they matter, laid out so that no value is ever cut.

Where a page is too narrow, prose is broken between words, and then columns go, the least important first; where even
the essential ones do not fit side by side, a row becomes a block of lines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, TypeVar

from rich.cells import cell_len, chop_cells

from paddle_tfm import latex
from paddle_tfm.language import _
from paddle_tfm.pages import document

Row = TypeVar("Row")
Line = list[tuple[str, str]]  # (text, style) one after the other
ONE_LINE = str.maketrans("\n\r\t", "   ")

ESSENTIAL = 100  # the importance of a column that is never dropped
GAP = 2  # spaces between columns
PROSE_WIDTH = 32  # cells that a column of prose gets at least, if its texts are as long


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column.

    Args:
        heading: what stands over it; it may be broken between words. text: a row's value as people read it.
        values: the same for programs, key → value; several where a cell says several things.
        importance: columns of less importance are dropped first, of equal ones the last. right: aligned right.
        prose: its texts may be broken between words. style: as rich names it, of a row. is_name: the heading is a name
            that the user gave, and no word of ours.
    """

    heading: str
    text: Callable[[Row], str]
    values: Callable[[Row], Mapping[str, object]]
    importance: int = ESSENTIAL
    right: bool = False
    prose: bool = False
    style: Callable[[Row], str] = lambda row: ""
    is_name: bool = False

    @property
    def title(self) -> str:
        """The heading in the reader's language."""
        return self.heading if self.is_name else _(self.heading)

    def cell(self, row: Row) -> str:
        """A row's text, on one line."""
        return self.text(row).translate(ONE_LINE)

    def width(self, rows: Sequence[Row]) -> int:
        """Cells that it takes without breaking a text."""
        return max([*map(_unbroken, self.title.split(" ")), *(cell_len(self.cell(row)) for row in rows)])

    def least_width(self, rows: Sequence[Row]) -> int:
        """Cells that it needs at least."""
        if not self.prose:
            return self.width(rows)
        words = [word for row in rows for word in self.cell(row).split(" ")]
        return max([*map(_unbroken, [*self.title.split(" "), *words]), min(PROSE_WIDTH, self.width(rows))])


def column(
    key: str,
    heading: str | None = None,
    text: Callable[[Any], str] = str,
    importance: int = ESSENTIAL,
    right: bool = False,
    prose: bool = False,
    style: str | Callable[[Any], str] = "",
    of: Callable[[Any], object] | None = None,
    none: str = "",
    is_name: bool = False,
) -> Column[Any]:
    """A column of one value of each row: that under `key`, of rows that are mappings, or what `of` says.

    Args:
        key: what the value is called for programs, and over the column unless there is a `heading`. text: of a value,
            as people read it. none: what stands where the value is None.
    """
    value = of or (lambda row: row[key])

    def shown(row: Any) -> str:
        cell = value(row)
        return none if cell is None else text(cell)

    return Column(
        key if heading is None else heading,
        shown,
        lambda row: {key: value(row)},
        importance,
        right,
        prose,
        style if callable(style) else lambda row: style,
        is_name,
    )


@dataclass
class Table(Generic[Row]):
    """Rows under columns, the first of which names the row."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    title: str = ""
    dropped: list[str] = field(default_factory=list)  # headings of what the last `lines` had no room for

    def records(self) -> list[dict[str, object]]:
        """For programs: a mapping for each row, with every column."""
        return [{key: value for each in self.columns for key, value in each.values(row).items()} for row in self.rows]

    def csv(self) -> str:
        """Comma-separated values, as RFC 4180 has them but for line ends: a line of keys, then a line a row. A list is
        its items with spaces between, a mapping `key=value` likewise; None is nothing."""
        records, out = self.records(), io.StringIO()
        keys = list(dict.fromkeys(key for record in records for key in record))
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(keys)
        writer.writerows([[_plain(record.get(key)) for key in keys] for record in records])
        return out.getvalue()

    def html(self) -> str:
        """The table on a page, the title as its caption; what is `dim` is faint, what is `bold` is bold."""
        numbers = [i for i, each in enumerate(self.columns) if each.right]
        rows = []
        for row in self.rows:
            cells = [escape(each.cell(row)) for each in self.columns]
            styles = {"dim": '<span class="same">{}</span>', "bold": "<b>{}</b>"}
            cells = [styles.get(each.style(row), "{}").format(cell) for each, cell in zip(self.columns, cells)]
            rows.append([f"<bdi>{cells[0]}</bdi>", *cells[1:]])
        texts = [i for i in range(len(self.columns)) if i not in numbers]
        return document.table(self.title, [each.title for each in self.columns], rows, texts)

    def latex(self, name: str, caption: str = "") -> str:
        r"""The table for a paper: booktabs, labelled ``tab:NAME``. `caption`: default, the title."""
        rows = [
            [latex.Bold(each.cell(row)) if each.style(row) == "bold" else each.cell(row) for each in self.columns]
            for row in self.rows
        ]
        header = [each.heading for each in self.columns]
        return latex.table(name, caption or self.title, header, rows, [each.right for each in self.columns])

    def lines(self, width: int | None = None) -> Iterator[Line]:
        """The table on a page of so many cells (None: of any width), without the title; no line ends with a space."""
        kept = self._fitting(width)
        self.dropped = [each.title for each in self.columns if each not in kept]
        if width is not None and _total([each.least_width(self.rows) for each in kept]) > width:
            yield from self._blocks(kept, width)
            return
        widths = self._widths(kept, width)
        yield from self._side_by_side([(each.title, "bold") for each in kept], kept, widths, bottom=True)
        for row in self.rows:
            yield from self._side_by_side([(each.cell(row), each.style(row)) for each in kept], kept, widths)

    def _fitting(self, width: int | None) -> list[Column[Row]]:
        """The columns that there is room for, in their order."""
        kept = list(self.columns)
        while width is not None and _total([each.least_width(self.rows) for each in kept]) > width:
            droppable = [each for each in reversed(kept) if each.importance < ESSENTIAL]
            if not droppable:
                break
            kept.remove(min(droppable, key=lambda each: each.importance))
        return kept

    def _widths(self, columns: Sequence[Column[Row]], width: int | None) -> list[int]:
        """What is left of the page goes to the columns of prose, the first first. Where a page has no end, each row is
        one line, that of the headings too."""
        if width is None:
            return [max(each.width(self.rows), cell_len(each.title)) for each in columns]
        widths = [each.least_width(self.rows) for each in columns]
        for i, each in enumerate(columns):
            widths[i] += min(each.width(self.rows) - widths[i], width - _total(widths))
        return widths

    def _side_by_side(
        self,
        cells: Sequence[tuple[str, str]],
        columns: Sequence[Column[Row]],
        widths: Sequence[int],
        bottom: bool = False,
    ) -> Iterator[Line]:
        """One row; `bottom`: shorter cells stand at its foot, as headings do over numbers."""
        broken = [wrapped(text, width) for (text, _), width in zip(cells, widths)]
        height = max(map(len, broken))
        for number in range(height):
            line: Line = []
            for i, (parts, each) in enumerate(zip(broken, columns)):
                index = number - (height - len(parts)) if bottom else number
                part = parts[index] if 0 <= index < len(parts) else ""
                space = " " * (widths[i] - cell_len(part))
                line += [(space, ""), (part, cells[i][1])] if each.right else [(part, cells[i][1]), (space, "")]
                line.append((" " * GAP, ""))
            yield _trimmed(line)

    def _blocks(self, columns: Sequence[Column[Row]], width: int) -> Iterator[Line]:
        """A row as lines, one a column; for pages that are narrower than the essential columns."""
        margin = max((cell_len(each.title) for each in columns[1:]), default=0) + 2 * GAP
        for row in self.rows:
            yield [(columns[0].cell(row), columns[0].style(row))]
            for each in columns[1:]:
                room = max(width - margin, 8)
                parts = wrapped(each.cell(row), room) if each.prose else [each.cell(row)]
                for i, part in enumerate(parts):
                    heading = "" if i else each.title
                    pad = " " * (margin - GAP - cell_len(heading))
                    yield _trimmed([(" " * GAP, ""), (heading, "dim"), (pad, ""), (part, each.style(row))])


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken between words, and between characters that are two cells wide
    (Chinese has no spaces). A longer word stays whole."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width:
            lines[-1] = longer
        elif cell_len(word) <= width or _unbroken(word) == cell_len(word):
            lines += [word]
        else:
            lines += chop_cells(word, width)
    return [line for line in lines if line] or [""]


def _unbroken(word: str) -> int:
    """Cells of a word that cannot be broken; one with characters two cells wide can be."""
    return cell_len(word) if cell_len(word) == len(word) else 2


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _trimmed(line: Line) -> Line:
    while line and not line[-1][0].strip(" "):
        line.pop()
    return line


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={each}" for key, each in value.items())
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
