"""What was compared: task, data, model and budget."""

from __future__ import annotations

from html import escape

from paddle_tfm import units
from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.pages.document import definitions
from paddle_tfm.protocols import Section


class Compared(Section):
    """What was compared: task, data, model and budget."""

    heading = "What was compared"
    place = 200

    def text(self, facts: Facts) -> list[str]:
        """What the recipe says that it compares: a table is not read without it."""
        return _summaries(facts)

    def html(self, facts: Facts) -> str:
        """The facts, each with its name."""
        comparison = facts.comparison
        signature = comparison.signature(comparison.metric)
        name = units.metric_name(comparison.metric)
        decided = (
            f"{name} on the {comparison.split} split, {'higher' if comparison.higher_is_better else 'lower'} is better"
        )
        training, differs = facts.training()
        items = [
            ("task", _task(facts)),
            ("data", escape(recipe_words.data(facts.about))),
            ("for example", recipe_words.pairs(facts.samples())),
            ("model", escape(recipe_words.model(facts.section("model")))),
            ("size", escape(_sizes(facts))),
            (f"training of {facts.baseline}" if differs else "training", escape(training)),
            ("padding in batches", escape(recipe_words.padding(facts.padding()))),
            ("seeds", escape(facts.seeds())),
            ("output by", escape(recipe_words.component(facts.recipe.get("search", "")))),
            ("decided by", f"{escape(decided)}{f' <code>{escape(signature)}</code>' if signature else ''}"),
        ]
        return definitions(items)


def _task(facts: Facts) -> str:
    text = escape(recipe_words.component(facts.recipe.get("task", "")))
    return text + "".join(f"<br>{escape(summary)}" for summary in _summaries(facts)) if text else ""


def _summaries(facts: Facts) -> list[str]:
    summaries = {str(recipe.get("summary", "")) for recipe in facts.recipes.values()} - {""}
    return [f"“{summary}”" for summary in sorted(summaries)]


def _sizes(facts: Facts) -> str:
    """The number of parameters, once if all variants have the same."""
    sizes = {row.variant: row.parameters for row in facts.comparison.rows}
    if len(set(sizes.values())) == 1:
        return f"{next(iter(sizes.values())):,} parameters"
    return f"{min(sizes.values()):,} to {max(sizes.values()):,} parameters"
