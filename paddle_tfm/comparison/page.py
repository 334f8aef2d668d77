"""A comparison as one HTML page that needs no other file, and no network."""

from __future__ import annotations

from html import escape

from paddle_tfm import units
from paddle_tfm.comparison.sections import curves, predictions, runs, variants
from paddle_tfm.comparison.style import CSS
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.comparison.verdict import plural, verdict


def page(comparison: Comparison, png: bytes, svg: str) -> str:
    """The whole comparison on one page; the figure as `svg`, or as `png` where that is smaller."""
    recipes = list(dict.fromkeys(run.results["recipe"] for run in comparison.runs))
    counts = f"{plural(len(comparison.rows), 'variant')}, {plural(len(comparison.runs), 'run')}"
    facts = f"{'recipe' if len(recipes) == 1 else 'recipes'} {', '.join(recipes)} · {counts} · decided by "
    facts += f"{units.metric_name(comparison.metric)} on the {comparison.split} split"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(comparison.name)} · comparison</title>
<style>{CSS}</style>
</head>
<body>
<main>
<header>
<p class="facts">{escape(facts)}</p>
<h1 dir="auto">{escape(comparison.name)}</h1>
<p class="verdict">{escape(verdict(comparison))}</p>
</header>
<section>
<h2>Variants</h2>
{variants.html(comparison)}
</section>
<section>
<h2>Curves and values</h2>
{curves.html(comparison, png, svg)}
</section>
<section>
<h2>Predictions</h2>
{predictions.html(comparison)}
</section>
<section>
<h2>Runs</h2>
{runs.html(comparison)}
</section>
</main>
</body>
</html>
"""
