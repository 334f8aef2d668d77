"""A command within a template for the shell, quoted as its place asks for; and what it wrote last."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

PLACE = "{cell}"


def filled(template: str, command: Sequence[str]) -> str:
    """The template with the command in every `{cell}`: as words outside of quotes; within quotes as a part of their
    text, which another shell reads as these words."""
    words = shlex.join(command)
    as_text = {"": words, "'": words.replace("'", "'\\''"), '"': _escaped(words)}
    return "".join(as_text[quote] if part == PLACE else part for quote, part in _parts(template))


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in '\\"$`' else letter for letter in text)


def _parts(template: str) -> Iterator[tuple[str, str]]:
    """(the quote that is open, a letter or `{cell}`)."""
    quote, i = "", 0
    while i < len(template):
        part = PLACE if template.startswith(PLACE, i) else template[i]
        if part == "\\" and quote != "'":
            part = template[i : i + 2]
        yield quote, part
        if part in ("'", '"') and quote in ("", part):
            quote = "" if quote else part
        i += len(part)


def wrote_last(lines: Sequence[str]) -> str:
    """The last lines of a failed command's output, behind the sentence that it failed."""
    return ", and wrote last:" + "".join(f"\n  {line}" for line in lines) if lines else ""
