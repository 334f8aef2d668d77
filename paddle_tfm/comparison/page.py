"""A comparison as one HTML page that needs no other file, and no network."""

from __future__ import annotations

from html import escape

from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.sections import claims, compared, curves, outputs, results, runs
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.comparison.verdict import verdict
from paddle_tfm.pages.document import Section, document


def page(comparison: Comparison) -> str:
    """The whole comparison on one page: what came out first, then what was done."""
    facts = Facts(comparison)
    sections = [
        Section("Scores", results.html(facts)),
        *([Section("Claims", claims.html(facts))] if comparison.claims else []),
        Section("What was compared", compared.html(facts)),
        Section("Learning curves", curves.html(facts)),
        Section("Outputs", outputs.html(facts)),
        Section("Runs", runs.html(facts)),
        Section("Again", runs.again(facts)),
        Section("How to read it", runs.reading(facts)),
    ]
    return document(
        f"{comparison.name} · comparison",
        "Comparison",
        comparison.name,
        verdict(comparison),
        f'<p class="compared">{escape(facts.sentence())}</p>',
        sections,
    )
