"""The frame of a page: its head, what it says first, and its sections, most of them folded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from paddle_tfm.language import _
from paddle_tfm.pages.style import colour, css


class Section(NamedTuple):
    """A heading, and the HTML below it. `summary`: what is in it, a line beside the heading of a `folded` one."""

    heading: str
    html: str
    summary: str = ""
    folded: bool = True

    def page(self) -> str:
        """All of it; a link to `page.html#learning-curves` opens what is folded."""
        anchor = re.sub(r"\W+", "-", self.heading.lower()).strip("-")
        heading = f"<h2>{escape(self.heading)}</h2>"
        if self.folded:
            return f"<section>{fold(heading, self.summary, self.html, anchor)}</section>"
        return f'<section id="{anchor}">\n{heading}\n{self.html}\n</section>'


def fold(heading: str, summary: str, html: str, anchor: str = "") -> str:
    """HTML that a click on its heading (HTML) opens. The anchor stands within, where a browser opens it for a link."""
    what = f"<span>{escape(summary)}</span>" if summary else ""
    inner = f'<div class="within"{anchor and f" id={chr(34)}{anchor}{chr(34)}"}>\n{html}\n</div>'
    return f"<details>\n<summary>{heading}{what}</summary>\n{inner}\n</details>"


def document(
    title: str, kind: str, heading: str, question: str, lead: str, facts: str, sections: Sequence[Section]
) -> str:
    """A whole page.

    Args:
        title: of the window; kind: what sort of page it is, small above the `heading`; question: what was asked, "" of
            none; lead: the sentence that matters most (texts); facts: what else must be known before reading on (HTML).
    """
    asked = f'<p class="question">{escape(question)}</p>' if question else ""
    body = "\n".join(section.page() for section in sections)
    return f"""<!DOCTYPE html>
<html lang="{_("en")}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="paddle_tfm">
<title>{escape(title)}</title>
<style>{css()}</style>
</head>
<body>
<a class="skip" href="#content">{_("Skip to the content")}</a>
<div class="page">
<header>
<p class="kind">{escape(kind)}</p>
<h1 dir="auto">{escape(heading)}</h1>
{asked}
<p class="verdict">{escape(lead)}</p>
{facts}
</header>
<main id="content">
{body}
</main>
</div>
</body>
</html>
"""


def notes(texts: Sequence[str]) -> str:
    """Sentences below what they are about; in them, what stands between backticks is code."""
    coded = (re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)) for text in texts)
    return "".join(f'<p class="note">{text}</p>' for text in coded)


def named(number: int, name: str) -> str:
    """A variant in its colour."""
    return f'<i class="swatch {colour(number)}"></i><bdi>{escape(name)}</bdi>'


def choice(legend: str, group: str, options: Sequence[tuple[str, str]], chosen: int = 0, kind: str = "") -> str:
    """Several of which one is shown, by the style sheet alone: identifier and words of each, and which is first."""
    radios = "".join(
        f'<label><input type="radio" name="{group}" id="{name}"{" checked" if i == chosen else ""}>{text}</label>'
        for i, (name, text) in enumerate(options)
    )
    return f"<fieldset{kind and f' class={chr(34)}{kind}{chr(34)}'}><legend>{legend}</legend>{radios}</fieldset>"


def definitions(items: Sequence[tuple[str, str]]) -> str:
    """A list of names (text) and what belongs to each (HTML)."""
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{html}</dd></div>" for name, html in items if html)
    return f'<dl class="facts">{rows}</dl>'


def _layout(columns: int, texts: int) -> str:
    """Below which width a table of so many columns, some of them texts, becomes cards (`style.CARDS`): a phone has room
    for three of numbers."""
    return "" if columns + texts <= 3 else ' class="narrow"' if columns <= 6 else ' class="wide"'


LONG = 20  # letters of a heading, and of half as many of a word, that has a line of a card to itself
# A number or a short word, which breaks nowhere, in a column of texts too.
WHOLE = re.compile(r"(<span[^>]*>)?([+−-]?[\d.,]+[ %×]*|[\w.@-]{1,24})(</span>)?")


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int] = ()) -> str:
    """A table that becomes a card for each row where there is no room for it. Cells are HTML, the first names its row;
    `texts`: columns that hold no numbers."""
    head = "".join(
        f'<th scope="col" role="columnheader"{_kind(i, texts)}>{escape(name)}</th>' for i, name in enumerate(header)
    )
    body = ""
    for first, *rest in rows:
        body += f'<tr role="row"><th scope="row" role="rowheader">{first}</th>'
        for i, cell in enumerate(rest, 1):
            number = ' class="text number"' if i in texts and WHOLE.fullmatch(cell) else _kind(i, texts)
            word = max(re.sub("<[^>]*>", "", cell).split(), key=len, default="")
            number = number or (' class="long"' if len(header[i]) > LONG or len(word) > LONG / 2 else "")
            body += f'<td role="cell" data-label="{escape(header[i])}"{number}>{cell}</td>'
        body += "</tr>\n"
    return (
        f'<table role="table"{_layout(len(header), len(texts))}><caption>{escape(caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n<tbody role="rowgroup">\n{body}</tbody></table>'
    )


def _kind(column: int, texts: Sequence[int]) -> str:
    return ' class="text"' if column in texts or column == 0 else ""


def commands(lines: Sequence[str]) -> str:
    """Lines to be typed, which break where there is no room for them, but not within the name of an option."""
    options = (re.sub(r"(?<!\S)--[\w-]+", r"<span>\g<0></span>", escape(line)) for line in lines)
    return "".join(f'<pre class="command"><code>{line}</code></pre>' for line in options)
