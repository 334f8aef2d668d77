"""Pairs of texts out of files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from paddle_tfm.data.task import SPLITS, Example, Task
from paddle_tfm.errors import UserError, unknown


class Parallel(Task):
    """Pairs of texts from your files: one TSV a split, or a file of sources and one of targets; or pairs in the recipe.

    A split is ``file.tsv``, of which `columns` (counted from 0) say where source and target stand, or
    ``[sources.en, targets.de]``, line by line. Files are UTF-8, also as .gz; paths are relative to the current folder.
    Lines that are blank on both sides are skipped. `pairs`, a list of [source, target], serves as all three splits, for
    corpora that are to be learned by heart. `reverse` swaps source and target.
    """

    def __init__(
        self,
        train: str | list[str] | None = None,
        valid: str | list[str] | None = None,
        test: str | list[str] | None = None,
        columns: list[int] | None = None,
        reverse: bool = False,
        pairs: list[list[str]] | None = None,
    ):
        self.files = dict(zip(SPLITS, (train, valid, test)))
        self.columns = [0, 1] if columns is None else list(columns)
        self.reverse = reverse
        self.pairs = pairs
        if pairs is None:
            _check_files(self.files, self.columns)
        else:
            _check_pairs(pairs, [name for name, files in self.files.items() if files is not None])

    def examples(self, split: str) -> Iterator[Example]:
        if split not in SPLITS:
            raise UserError(unknown("split", split, SPLITS))
        pairs = self.pairs if self.pairs is not None else self._read(split)
        return (Example(target, source) if self.reverse else Example(source, target) for source, target in pairs)

    def _read(self, split: str) -> Iterable[tuple[str, str]]:
        files = self.files[split]
        if files is None and split == "test":
            return []  # nothing to be scored at the end
        if files is None:
            raise UserError(f"task 'parallel' has no file for the split '{split}': give it the option `{split}`")
        pairs = list(self._table(files) if isinstance(files, str) else _side_by_side(*files))
        if not pairs:
            names = files if isinstance(files, str) else " and ".join(files)
            raise UserError(f"{names}: no pair of texts in it, but the split '{split}' needs one")
        return pairs

    def _table(self, path: str) -> Iterator[tuple[str, str]]:
        for number, line in enumerate(_lines(path), 1):
            if not line.strip():
                continue
            cells = line.split("\t")
            if len(cells) == 1:
                raise UserError(f"{path}, line {number}: no TAB between source and target")
            if len(cells) <= max(self.columns):
                raise UserError(
                    f"{path}, line {number}: {len(cells)} columns, but `columns` asks for column {max(self.columns)}, "
                    f"counted from 0"
                )
            source, target = (cells[column].strip() for column in self.columns)
            if not source and not target:
                continue
            yield _full(source, path, number, "source"), _full(target, path, number, "target")


def _check_files(files: dict[str, str | list[str] | None], columns: list[int]) -> None:
    if files["train"] is None:
        raise ValueError("`train` must be a TSV file or [file of sources, file of targets]; or give `pairs`")
    for name, value in files.items():
        if isinstance(value, list) and len(value) != 2:
            raise ValueError(f"`{name}` must be one TSV file or two files, but has {len(value)}")
    if len(columns) != 2 or min(columns) < 0:
        raise ValueError(f"`columns` must be two numbers from 0 on, those of source and target, but is {columns}")


def _check_pairs(pairs: list[list[str]], files: list[str]) -> None:
    if files:
        raise ValueError(f"`pairs` must stand alone, but `{files[0]}` is given too")
    if not pairs:
        raise ValueError("`pairs` must hold at least one pair")
    for number, pair in enumerate(pairs, 1):
        if len(pair) != 2 or not all(text.strip() for text in pair):
            raise ValueError(f"`pairs` must hold a source and a target each, but number {number} is {pair}")


def _side_by_side(source_path: str, target_path: str) -> Iterator[tuple[str, str]]:
    count = [0, 0]
    for source, target in zip_longest(_lines(source_path), _lines(target_path)):
        count[0] += source is not None
        count[1] += target is not None
        if source is None or target is None or not (source.strip() or target.strip()):
            continue
        yield (
            _full(source.strip(), source_path, count[0], "source"),
            _full(target.strip(), target_path, count[1], "target"),
        )
    if count[0] != count[1]:
        raise UserError(
            f"{source_path} has {count[0]} lines, but {target_path} has {count[1]}: line n of the one must translate "
            f"line n of the other"
        )


def _full(text: str, path: str, number: int, side: str) -> str:
    if not text:
        raise UserError(f"{path}, line {number}: the {side} is empty, but its other side is not")
    return text


def _lines(path: str) -> Iterator[str]:
    """The lines of a file, with their ends; only LF ends a line (not U+2028, which occurs in texts)."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file (looked in {Path.cwd()})") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at {error.start + 1})"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        after = f", after line {number}" if number else ""
        raise UserError(f"{path}{after}: cannot be read: {error}") from error
