"""A comparison as one HTML page that needs no other file, and no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.parts import Part
from paddle_tfm.comparison.verdict import verdict
from paddle_tfm.pages.document import Section, document

KINDS = {"csv": "CSV", "tex": "LaTeX", "svg": "SVG", "pdf": "PDF"}  # ending → what a link says
FILES = "comparison"  # the folder of tables and figures, beside the page


def page(facts: Facts, parts: Sequence[Part]) -> str:
    """The whole comparison on one page: what came out first, then what was done."""
    comparison = facts.comparison
    first = [facts.sentence(), *comparison.caveats(even_none=True)]
    return document(
        f"{comparison.name} · comparison",
        "Comparison",
        comparison.name,
        verdict(comparison),
        "".join(f'<p class="compared">{escape(sentence)}</p>' for sentence in first),
        [Section(part.heading, part.html + _links(part)) for part in parts],
    )


def _links(part: Part) -> str:
    """The tables and figures of a section, as files for a paper."""
    kinds = []
    for name, files in groupby(part.files, key=lambda file: file.partition(".")[0]):
        links = " ".join(f'<a href="{FILES}/{file}">{KINDS[file.partition(".")[2]]}</a>' for file in files)
        kinds.append(f"{name} {links}")
    return f'\n<p class="note files">For a paper: {" · ".join(kinds)}</p>' if kinds else ""
