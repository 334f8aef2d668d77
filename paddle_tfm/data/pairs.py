"""Pairs of texts out of files, one at a time: tables, two files line by line, JSON, TMX and XLIFF.

Every complaint names the file and the line. Pairs without text on either side are skipped.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import PurePath
from typing import ClassVar

from paddle_tfm.data import markup
from paddle_tfm.data.lines import File, at_line, decoded, lines, one_line, opened, require_encoding
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.language import _, enumerated
from paddle_tfm.randomness import digest

Pair = tuple[str, ...]  # source and target; of a test perhaps more references
Row = tuple[int, Sequence[str]]  # number of its line, texts of a pair, each of which may be empty
DELIMITERS = ("\t", ";", ",", "|")  # of a .csv; where two fit alike, the first
SAMPLE = 20  # lines of a .csv by which its delimiter is chosen
MAX_RATIO = 1000
SHOWN = 5  # lines that a sentence names
BETWEEN = frozenset(" \t\r\n,[]")  # the items of a JSON list


@dataclass(frozen=True)
class Files:
    """Files of pairs, and how they are read: `{files: [a.en, a.de], ratio: 3}` in a recipe.

    Args:
        files: one of pairs; or one of sources and one of targets, line by line; of a test one for each reference.
            ratio: how often each pair stands in an epoch; 2.25: two times, and a quarter of them, chosen by a hash,
            once more.
        columns: where source and target stand, and a test's further references: numbers from 0, or names of the header,
            of a table; keys of JSON, where `translation.en` goes deeper and `references.0` into a list; languages of a
            TMX. encoding: of all bytes; default: by the byte order mark, else UTF-8.
        delimiter: between the columns of a table. Default: a TAB; of a .csv what fits its first lines. header: whether
            the first line of a table is none of pairs. Default: where `columns` are names. quoted: whether quotation
            marks enclose cells, as in CSV. Default: where the delimiter is no TAB.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # a misspelt key of a recipe is no key

    files: str | list[str]
    ratio: float = 1.0
    columns: list[int] | list[str] | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    quoted: bool | None = None

    def __str__(self) -> str:
        return self.files if isinstance(self.files, str) else enumerated(self.files)

    def require_sound(self, option: str) -> None:
        """Raises ValueError where a setting is out of range; `option` is what the files are given by, of which `train`
        has one target a source."""
        columns = [0, 1] if self.columns is None else self.columns
        for what, several in (("files", self.files), ("columns", columns)):
            if option == "train" and isinstance(several, list) and len(several) > 2:
                text = _(
                    "`{option}` has {number} {what}, but a training pair has one target; several references are for "
                    "`valid` and `test`, with `columns` of their own: `test: {{files: test.tsv, columns: [0, 1, 2]}}`"
                )
                raise ValueError(text.format(option=option, number=len(several), what=what))
        if isinstance(self.files, list) and len(self.files) < 2:
            text = _("`{option}` must be one file or two, but has {number}")
            raise ValueError(text.format(option=option, number=len(self.files)))
        if not 0 < self.ratio <= MAX_RATIO:
            text = _("`ratio` of {files} must be above 0 and at most {most}, but is {ratio}")
            raise ValueError(text.format(files=self, most=MAX_RATIO, ratio=self.ratio))
        require_encoding(self.encoding)
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            text = _("`delimiter` must be one character between the cells of a table, but is {delimiter}")
            raise ValueError(text.format(delimiter=repr(self.delimiter)))
        named = all(isinstance(column, str) and column for column in columns)
        if len(columns) < 2 or not (named or all(isinstance(column, int) and column >= 0 for column in columns)):
            text = _(
                "`columns` must be two numbers from 0 on, or two names, those of source and target, but is {columns}"
            )
            raise ValueError(text.format(columns=columns))

    def repeated(self, texts: Callable[[Files], Iterator[Pair]]) -> Iterator[Pair]:
        """The pairs that `texts` reads, as often as `ratio` says."""
        for _time in range(int(self.ratio)):
            yield from texts(self)
        if rest := self.ratio % 1:
            yield from (pair for pair in texts(self) if digest("ratio", *pair) < rest * 2**64)


def ignore(sentence: str) -> None:
    """Say it to nobody."""


def pairs(files: Files, dropped: dict[str, int] | None = None, say: Callable[[str], None] = ignore) -> Iterator[Pair]:
    """The pairs of files that are read as they say.

    Args:
        dropped: pairs of which one text is empty are left out, and their number in these files stands here. None: they
            are refused. say: is called with what was guessed of a file.
    Raises:
        UserError: with file and line: what cannot be read; that pairs have an empty side.
    """
    if isinstance(files.files, list):
        rows = _side_by_side(files.files, files.encoding)
    else:
        rows = _rows(files.files, files, say)
    number, empty = 0, []
    for line, texts in rows:
        if not any(texts):
            continue
        number += 1
        if not all(texts):
            side = texts.index("")
            reference = _("line {line}: reference {number}") if len(texts) > 2 else _("line {line}: the target")
            empty.append((reference if side else _("line {line}: the source")).format(line=line, number=side))
        elif dropped is not None or not empty:  # else only counted
            yield tuple(texts)
    if not empty:
        return
    which = _(", ").join([*empty[:SHOWN], *["…"][: len(empty) > SHOWN]])
    sentence = _("{files}: a side is empty in {empty} of {number} pairs ({which})").format(
        files=files, empty=f"{len(empty):,}", number=f"{number:,}", which=which
    )
    if dropped is None:
        raise UserError(_("{sentence}; mend them, or leave them out: `drop_empty: true`").format(sentence=sentence))
    dropped[str(files)] = len(empty)


def _rows(path: str, files: Files, say: Callable[[str], None]) -> Iterator[Row]:
    with opened(path) as (name, file):
        form = PurePath(name).suffix.lower()
        if markup.is_markup(file.peek(100)[:100].replace(b"\0", b"").decode("ascii", "ignore")):
            yield from markup.rows(file, path, files.columns, files.encoding, say)
            return
        texts = decoded(file, path, files.encoding)
        if form in (".json", ".jsonl", ".ndjson"):
            yield from _json(texts, path, files.columns or ["source", "target"])
        else:
            yield from _table(texts, path, files, form == ".csv", say)


# --------------------------------------------------------------------------------------------------------------- tables


def _table(texts: Iterator[str], path: File, files: Files, is_csv: bool, say: Callable[[str], None]) -> Iterator[Row]:
    delimiter, columns = files.delimiter or "\t", files.columns or [0, 1]
    if guessed := is_csv and not files.delimiter:
        head = list(islice(texts, SAMPLE))
        delimiter, texts = _delimiter(head), chain(head, texts)
    quoted = delimiter != "\t" if files.quoted is None else files.quoted
    wanted: list[int] = [] if isinstance(columns[0], str) else [int(column) for column in columns]
    is_header = not wanted if files.header is None else files.header
    first = True
    for number, cells in _cells(texts, path, delimiter, quoted):
        if len(cells) == 1:
            raise UserError(at_line(path, number, _one_cell(cells[0], delimiter)))
        if is_header:
            is_header, names = False, [cell.strip() for cell in cells]
            for column in () if wanted else columns:
                if column not in names:
                    raise UserError(at_line(path, number, unknown("column", column, names)))
            wanted = wanted or [names.index(str(column)) for column in columns]
            continue
        if len(cells) <= max(wanted):
            of_number = _("column {number}, counted from 0").format(number=max(wanted))
            which = of_number if isinstance(columns[0], int) else f"`{columns}`"
            text = _("{place}: {number} columns, but `columns` asks for {which}")
            raise UserError(text.format(place=at_line(path, number), number=len(cells), which=which))
        row = [cells[column].strip() for column in wanted]
        if guessed and first:
            is_said = files.header is not None or isinstance(columns[0], str)
            text = _("{path}: has {delimiter} between columns; its first pair is {source} → {target}{skip}")
            skip = "" if is_said else _("; `header: true` would skip it")
            shown = {"source": repr(row[0]), "target": repr(row[1])}
            say(text.format(path=path, delimiter=_shown(delimiter), **shown, skip=skip))
        first = False
        yield number, row


def _cells(texts: Iterator[str], path: File, delimiter: str, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """(number of its last line, cells) of the rows that are not blank."""
    if not quoted:
        for number, line in enumerate(texts, 1):
            if line.strip():
                yield number, line.split(delimiter)
        return
    rows = csv.reader(texts, delimiter=delimiter, strict=True)
    try:
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield rows.line_num, [one_line(cell) for cell in cells]
    except csv.Error as error:
        text = _("{place}: no CSV: {why}; `quoted: false` takes quotation marks as text")
        raise UserError(text.format(place=at_line(path, rows.line_num), why=error)) from error


def _delimiter(head: list[str]) -> str:
    """The one that gives the first lines equally many cells; else the one that gives the first line most."""
    counts = {}
    for delimiter in DELIMITERS:
        rows = [len(cells) for cells in csv.reader(head, delimiter=delimiter) if cells]
        counts[delimiter] = (len(set(rows)) == 1 and rows[0] > 1, rows[0] if rows else 0)
    return max(counts, key=counts.__getitem__)


def _shown(delimiter: str) -> str:
    return {"\t": "TAB", " ": _("a space")}.get(delimiter, f"“{delimiter}”")


def _one_cell(line: str, delimiter: str) -> str:
    others = [each for each in DELIMITERS if each != delimiter and each in line]
    hint = _("; is it a table with {delimiter}? Then say `delimiter: {quoted}`")
    hint = hint.format(delimiter=_shown(others[0]), quoted=json.dumps(others[0])) if others else ""
    return _("no {delimiter} between source and target{hint}").format(delimiter=_shown(delimiter), hint=hint)


def _side_by_side(paths: Sequence[File], encoding: str | None) -> Iterator[Row]:
    """Line n of each file."""
    counts = [0] * len(paths)
    for number, row in enumerate(zip_longest(*(lines(path, encoding) for path in paths)), 1):
        if number == 1 and (path := next((path for path, text in zip(paths, row) if markup.is_markup(text or "")), "")):
            sentence = _(
                "{path}: is XML, and two files are read side by side, line by line; a TMX or XLIFF is given alone"
            )
            raise UserError(sentence.format(path=path))
        texts = [text.strip() for text in row if text is not None]
        if len(texts) == len(paths):
            yield number, texts
        counts = [count + (text is not None) for count, text in zip(counts, row)]
    for path, count in zip(paths, counts):
        if count != counts[0]:
            sentence = _(
                "{source} has {sources} lines, but {target} has {targets}: line n of the one must translate line n of "
                "the other"
            )
            raise UserError(sentence.format(source=paths[0], sources=counts[0], target=path, targets=count))


# ----------------------------------------------------------------------------------------------------------------- JSON


def _json(texts: Iterator[str], path: File, keys: Sequence[int | str]) -> Iterator[Row]:
    """The texts of pairs out of JSON objects, one a line or in a list. A key may go deeper: `translation.en`."""
    first = next((line for line in texts if line.strip()), "")
    items = _of_list if first.lstrip().startswith("[") else _of_lines
    for number, row in items(chain([first], texts), path):
        yield number, [_text(row, str(key), at_line(path, number)) for key in keys]


def _of_lines(texts: Iterator[str], path: File) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(texts, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(_not_json(at_line(path, number), error)) from error


def _of_list(texts: Iterator[str], path: File) -> Iterator[tuple[int, object]]:
    """The items of a list, each as soon as its last line is read: a corpus may be larger than memory."""
    decode, text, closed = json.JSONDecoder().raw_decode, "", False
    for number, line in enumerate(texts, 1):
        text, at = text + line, 0
        while True:
            while text[at : at + 1] in BETWEEN:
                closed, at = closed or text[at] == "]", at + 1
            try:
                item, at = decode(text, at)
            except (json.JSONDecodeError, RecursionError) as error:
                if isinstance(error, RecursionError) or error.pos < len(text.rstrip()):  # no line more would mend it
                    raise UserError(_not_json(at_line(path, number), error)) from error
                break
            yield number, item
        text = text[at:]
    if text.strip() or not closed:
        raise UserError(_not_json(path, _("ends within its list")))


def _not_json(where: File, why: object) -> str:
    return _("{where}: not JSON: {why}").format(where=where, why=why)


def _text(row: object, key: str, where: str) -> str:
    value, rest = row, key
    while rest:
        name = rest.partition(".")[0]
        if isinstance(value, list) and name.isdecimal():
            if int(name) >= len(value):
                text = _("{where}: `columns` asks for `{key}`, counted from 0, but there are {number} texts")
                raise UserError(text.format(where=where, key=key, number=len(value)))
            value, rest = value[int(name)], rest[len(name) + 1 :]
            continue
        if not isinstance(value, Mapping):
            text = _("{where}: must hold an object with `{key}`, but holds {value}")
            raise UserError(text.format(where=where, key=key, value=repr(str(value)[:40])))
        name = rest if rest in value else name
        if name not in value:
            raise UserError(f"{where}: {unknown('key', name, value)}")
        value, rest = value[name], rest[len(name) + 1 :]
    if isinstance(value, list) and value:
        names = ", ".join(f"{key}.{i}" for i in range(len(value)))
        text = _(
            "{where}: `{key}` is a list of {number}; several references of a test are named: `columns: […, {names}]`"
        )
        raise UserError(text.format(where=where, key=key, number=len(value), names=names))
    if not isinstance(value, str):
        text = _("{where}: `{key}` must be a text, but is {value}")
        raise UserError(text.format(where=where, key=key, value=str(value)[:40]))
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        text = _("{where}: `{key}` holds half of a surrogate pair, which is no character")
        raise UserError(text.format(where=where, key=key))
    return one_line(value)


def share(text: str) -> float:
    """A hash of the text as a number in [0, 1), evenly distributed: a share s of all texts is below s."""
    return digest(text) / 2**64
