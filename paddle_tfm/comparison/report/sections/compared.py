"""What was compared: task, data, model, budget, and each variant as a difference to the baseline."""

from __future__ import annotations

from html import escape

from paddle_tfm import units
from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.pages.document import definitions
from paddle_tfm.protocols import Section
from paddle_tfm.recipe.differences import differences
from paddle_tfm.tabular import Column, Table

SAME = "The recipes of all variants are the same."


class Compared(Section):
    """What was compared: task, data, model, budget, and each variant as a difference to the baseline."""

    heading = "What was compared"
    place = 200

    def tables(self, facts: Facts) -> dict[str, Table]:
        """The settings in which variants differ."""
        table = _variants(facts)
        return {"variants": table} if table else {}

    def text(self, facts: Facts) -> list[str]:
        """What the recipe says that it compares: a table is not read without it."""
        return _summaries(facts)

    def html(self, facts: Facts) -> str:
        """The facts, then the variants."""
        several = len(facts.recipes) > 1 and any(facts.recipes.values())
        table = _variants(facts)
        variants = f"<h3>The variants</h3>{table.html()}" if table else f"<p>{SAME}</p>" if several else ""
        return _facts(facts) + variants


def _facts(facts: Facts) -> str:
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


def _variants(facts: Facts) -> Table | None:
    """A row for each variant, a column for each setting in which any differs from the baseline; what equals the
    baseline's is faint. None where there is no difference."""
    if len(facts.recipes) < 2:
        return None
    changed = {
        name: {item.path: item for item in differences(facts.recipe, other)} for name, other in facts.recipes.items()
    }
    base = {item.path: item.one for items in changed.values() for item in items.values()}
    if not base:
        return None

    def setting(path: str) -> Column[str]:
        def value(name: str) -> object:
            return changed[name][path].other if path in changed[name] else base[path]

        def style(name: str) -> str:
            return "" if path in changed[name] or name == facts.baseline else "dim"

        def text(name: str) -> str:
            return recipe_words.component(value(name))

        return Column(path, text, lambda name: {path: text(name)}, style=style)

    first = Column[str](
        "variant",
        lambda name: f"{name} (baseline)" if name == facts.baseline else name,
        lambda name: {"variant": name},
    )
    title = "The settings in which variants differ from the baseline; grey: as there. Their recipes are else alike."
    return Table([first, *map(setting, base)], list(changed), title)
