"""The language that people are spoken to in: English, or Chinese through the catalogues in `locale/`.

As in every program that uses gettext, the first of LANGUAGE, LC_ALL, LC_MESSAGES and LANG that is set decides; `--lang`
of the command line sets LANGUAGE, and so the processes that it starts follow. What programs read is always English:
JSON, CSV, LaTeX, logs, the files of a run. `python docs/catalogue.py` writes the catalogues.
"""

from __future__ import annotations

import gettext
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

DOMAIN = "paddle_tfm"
FOLDER = Path(__file__).parent / "locale"
LANGUAGES = {"en": "English", "zh": "中文"}
VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # in the order in which gettext asks for them
_is_english: ContextVar[bool] = ContextVar("is_english", default=False)


def _(text: str) -> str:
    """`text` in the reader's language."""
    return _catalogue(*map(os.environ.get, VARIABLES)).gettext(text) if text and not _is_english.get() else text


@cache
def _catalogue(*_variables: str | None) -> gettext.NullTranslations:
    """The catalogue that these variables ask for. `gettext.dgettext` looks for its file at every call."""
    return gettext.translation(DOMAIN, FOLDER, fallback=True)


def counted(number: int, what: str) -> str:
    """`1 seed`, `3 seeds`, `3 个种子`: `units.plural` in the reader's language."""
    text = f"{{}} {what}s"
    return f"1 {what}" if number == 1 and _(text) == text else _(text).format(f"{number:,}")


def enumerated(words: Iterable[object]) -> str:
    """`a, b and c`, `a、b 和 c`: `units.listed` in the reader's language."""
    *first, last = map(str, words)
    return f"{_(', ').join(first)}{_(' and ')}{last}" if first else last


@contextmanager
def english() -> Iterator[None]:
    """Within this block all is English: what programs and papers read."""
    before = _is_english.set(True)
    try:
        yield
    finally:
        _is_english.reset(before)


def translate_click() -> None:
    """Let click speak the reader's language too. It asks for the process's own catalogue, so only the command line does
    this, and no program that imports us."""
    gettext.bindtextdomain("click", str(FOLDER))
    gettext.textdomain("click")
