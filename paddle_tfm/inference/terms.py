"""Terms: which target words are required where a source holds a term."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from paddle_tfm.data.lines import at_line, lines
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.text_lengths import UNSPACED

LETTER = f"[^\\W{UNSPACED}]"  # of scripts that write spaces between words


class Terms:
    """Source term → required target words."""

    def __init__(self, words: Mapping[str, str]):
        self._words = words
        self._pattern = re.compile("|".join(map(_alternative, sorted(words, key=len, reverse=True))) or "(?!)")

    @classmethod
    def read(cls, file: str | Path) -> Terms:
        """Lines of a source term, a TAB and target words.

        Raises:
            UserError: the file cannot be read, a line is none of these, or a term is there twice with other words.
        """
        words: dict[str, str] = {}
        for number, line in enumerate(lines(file), 1):
            cells = [cell.strip() for cell in line.split("\t")]
            if not any(cells):
                continue
            if len(cells) != 2 or not all(cells):
                text = _("must be a source term, a TAB and the target words that it requires, but is {line}")
                raise UserError(at_line(file, number, text.format(line=repr(line.rstrip()))))
            if words.setdefault(*cells) != cells[1]:
                text = _("'{term}' requires '{words}', but '{others}' before")
                others = words[cells[0]]
                raise UserError(at_line(file, number, text.format(term=cells[0], words=cells[1], others=others)))
        return cls(words)

    def required(self, text: str) -> list[str]:
        """The target words that a source requires, each once. A term counts where it stands as it is written, but not
        within a word; of terms that overlap the first counts, and of those the longest."""
        return list(dict.fromkeys(self._words[term] for term in self._pattern.findall(text)))


def _alternative(term: str) -> str:
    before = f"(?<!{LETTER})" if re.match(LETTER, term[0]) else ""
    after = f"(?!{LETTER})" if re.match(LETTER, term[-1]) else ""
    return f"{before}{re.escape(term)}{after}"
