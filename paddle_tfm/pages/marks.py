"""Two texts, the characters in which they differ marked."""

from __future__ import annotations

from difflib import SequenceMatcher
from html import escape

MAX_CHARACTERS = 2000  # of a text that a page shows


def marked(reference: str, hypothesis: str) -> tuple[str, str]:
    """Both texts as HTML: what the hypothesis lacks is marked in the reference, what it has too much in itself."""
    first, second = reference[:MAX_CHARACTERS], hypothesis[:MAX_CHARACTERS]
    left, right = "", ""
    for kind, i, j, k, m in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        a, b = escape(first[i:j]), escape(second[k:m])
        left += a if kind == "equal" or not a else f'<mark class="missing">{a}</mark>'
        right += b if kind == "equal" or not b else f'<mark class="extra">{b}</mark>'
    return left, right or "<i>nothing</i>"
