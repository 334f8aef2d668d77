"""Predictions beside their references, the characters in which they differ marked."""

from __future__ import annotations

from difflib import SequenceMatcher
from html import escape

from paddle_tfm.comparison.samples import samples
from paddle_tfm.comparison.table import Comparison

MAX_CHARACTERS = 2000  # of a text that the page shows


def html(comparison: Comparison) -> str:
    """Right predictions, then wrong ones, a card each."""
    right, wrong = samples(comparison)
    if not right and not wrong:
        return "<p>None were recorded: there is no test split, or no run came to its end.</p>"
    parts = []
    for name, items in (("Right", right), ("Wrong", wrong)):
        whose = f" · {items[0]['variant']}, seed {items[0]['seed']}" if items else ""
        if items and right and items[0]["variant"] != right[0]["variant"]:
            whose += f" ({right[0]['variant']} has none)"
        parts.append(f'<h3 class="{name.lower()}">{name}<small dir="auto">{escape(whose)}</small></h3>')
        cards = "".join(map(_card, items))
        parts.append(f'<div class="cards">{cards}</div>' if items else f"<p>No prediction was {name.lower()}.</p>")
    return "\n".join(parts)


def _card(item: dict) -> str:
    reference, hypothesis = _marked(item["reference"], item["hypothesis"])
    rows = [("source", escape(item["source"][:MAX_CHARACTERS])), ("reference", reference)]
    rows += [] if item["right"] else [("hypothesis", hypothesis)]
    rows.append(("score", f"{item['score']:.4g}".replace("-", "−")))
    cells = "".join(f'<dt>{name}</dt><dd dir="auto">{text}</dd>' for name, text in rows)
    return f"<dl>{cells}</dl>\n"


def _marked(reference: str, hypothesis: str) -> tuple[str, str]:
    """Both texts as HTML, the characters in which they differ marked."""
    first, second = reference[:MAX_CHARACTERS], hypothesis[:MAX_CHARACTERS]
    left, right = "", ""
    for kind, i, j, k, m in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        a, b = escape(first[i:j]), escape(second[k:m])
        left += a if kind == "equal" or not a else f'<mark class="missing">{a}</mark>'
        right += b if kind == "equal" or not b else f'<mark class="extra">{b}</mark>'
    return left, right or "<i>nothing</i>"
