"""Where the cursor stands in a value that is still being typed, such as `{encoder: {name: batch, ep`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Level:
    """A mapping or a list that is not closed yet.

    Args:
        opening: "{" or "[". key: of a mapping, the one whose value is being typed; None before a colon. texts: of a
            mapping, the values typed so far by key, as they are written. start: the index of the text's first letter
            that belongs to what is being typed.
    """

    opening: str
    key: str | None = None
    texts: dict[str, str] = field(default_factory=dict)
    start: int = 0


@dataclass(frozen=True)
class Cursor:
    """The open levels from the outermost to the innermost, and what has been typed of the word at the end."""

    levels: tuple[Level, ...]
    word: str
    before: str  # all that stands before that word


def locate(text: str) -> Cursor | None:
    """Where the end of `text` is; None where nothing can follow, as behind a bracket that closes it all."""
    levels: list[Level] = []
    start, closed = 0, False
    for i, letter in enumerate(text):
        if letter in "{[":
            levels.append(Level(letter))
            start = i + 1
        elif letter in "]}" and levels:
            _finish(levels[-1], text[start:i])
            levels.pop()
            start, closed = i + 1, not levels
        elif letter == ",":
            if levels:
                _finish(levels[-1], text[start:i])
            start, closed = i + 1, False  # outside of brackets another value begins
        elif letter == ":" and levels and levels[-1].opening == "{" and levels[-1].key is None:
            levels[-1].key = text[start:i].strip()
            start = i + 1
    if closed:
        return None
    word = text[start:].lstrip()
    return Cursor(tuple(levels), word, text[: len(text) - len(word)])


def _finish(level: Level, text: str) -> None:
    """A value ends: with what key, and what it was."""
    if level.key is not None:
        level.texts.setdefault(level.key, text.strip())
    level.key = None
