"""A comparison as a Markdown table, for the draft of a paper."""

from __future__ import annotations

import re

from paddle_tfm.comparison.columns import cells, header, notes
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.comparison.verdict import verdict


def markdown(comparison: Comparison) -> str:
    """The table, the verdict above it and what its columns mean below."""

    def line(texts: list[str]) -> str:
        return f"| {' | '.join(_plain(text) for text in texts)} |"

    names = header(comparison)
    lines = [f"# {_plain(comparison.name)}", "", _plain(verdict(comparison)), ""]
    lines += [*(f"- {_plain(sentence)}" for sentence in comparison.caveats(even_none=True)), "", line(names)]
    lines += [f"|{'|'.join([':---', *['---:'] * (len(names) - 1)])}|"]
    lines += [line(cells(comparison, row)) for row in comparison.rows]
    lines += ["", *(f"- {_plain(note)}" for note in notes(comparison)), "", "![Curves and values](comparison.png)", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*|<>\[\]#])", r"\\\1", " ".join(text.split()))
