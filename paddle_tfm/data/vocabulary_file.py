"""A vocabulary from elsewhere: lines of pieces, or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from paddle_tfm.data.lines import at_line, lines
from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.errors import UserError
from paddle_tfm.files import json_value
from paddle_tfm.language import _


def read_pieces(file: str) -> list[str]:
    """The pieces of a file, in its order, without ours for padding, begin, end and unknown: one a line, alone or with
    its count, id or score behind a TAB or a space; or a .json, a list of pieces or {piece: id}.

    Raises:
        UserError: it cannot be read, is not of that form, or holds a piece twice.
    """
    places: dict[str, str] = {}
    for place, piece in _of_json(file) if file.endswith(".json") else _of_lines(file):
        if piece in places:
            text = _("{file}, {place}: the piece '{piece}' stands in {first} already")
            raise UserError(text.format(file=file, place=place, piece=piece, first=places[piece]))
        places[piece] = place
    if not places:
        raise UserError(_("{file}: no piece in it").format(file=file))
    return [piece for piece in places if piece not in SPECIAL]


def _of_json(file: str) -> Iterator[tuple[str, str]]:
    content = json_value(Path(file))
    try:
        pieces = sorted(content, key=content.__getitem__) if isinstance(content, Mapping) else content
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise TypeError
    except TypeError:
        text = _("must hold a list of pieces, or {piece: id}; a tokenizer.json is for `tokenizer: hugging_face`")
        raise UserError(f"{file}: {text}") from None
    return ((_("place {number}").format(number=number), piece) for number, piece in enumerate(pieces, 1))


def _of_lines(file: str) -> Iterator[tuple[str, str]]:
    """The first line decides whether the others have a number too."""
    separator = None
    for number, line in enumerate(lines(file), 1):
        piece = line.rstrip("\r\n")
        if separator is None:
            separator = next((mark for mark in "\t " if mark in piece[1:]), "")
        if any(letter < "\t" for letter in piece):
            text = _(
                "{place}: holds control characters, so it is no list of pieces (a SentencePiece model is for "
                "`tokenizer: sentencepiece_file`)"
            )
            raise UserError(text.format(place=at_line(file, number)))
        if separator and piece:
            piece, _separator, count = piece.rpartition(separator)
            if not count.strip("-").replace(".", "", 1).replace("e-", "", 1).isdecimal():
                text = _(
                    "{place}: must hold a piece, alone or (in all lines) with a TAB or a space and its count, but is "
                    "{line}"
                )
                raise UserError(text.format(place=at_line(file, number), line=repr(line.strip()[:40])))
        if piece:
            yield _("line {number}").format(number=number), piece
