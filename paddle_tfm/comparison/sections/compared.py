"""What was compared: task, data, model, budget, and each variant as a difference to the baseline."""

from __future__ import annotations

from html import escape

from paddle_tfm import units
from paddle_tfm.comparison import describe
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.sides import SETTINGS, confounds, gaps
from paddle_tfm.pages.document import definitions, table
from paddle_tfm.recipe.differences import differences


def html(facts: Facts) -> str:
    """The facts, then the variants."""
    comparison = facts.comparison
    signature = comparison.signatures.get(comparison.metric, "")
    name = units.metric_name(comparison.metric)
    decided = (
        f"{name} on the {comparison.split} split, {'higher' if comparison.higher_is_better else 'lower'} is better"
    )
    items = [
        ("task", _task(facts)),
        ("data", escape(describe.data(facts.about))),
        ("for example", describe.pairs(facts.samples())),
        ("model", escape(describe.model(facts.sections("model")))),
        ("size", escape(_sizes(facts))),
        ("training", escape(describe.training(facts.sections("train")))),
        ("seeds", escape(", ".join(map(str, sorted({run.seed for run in comparison.runs}))))),
        ("output by", escape(describe.component(facts.recipe.get("search", "")))),
        ("decided by", f"{escape(decided)}{f' <code>{escape(signature)}</code>' if signature else ''}"),
    ]
    return definitions(items) + _variants(facts) + _beside(facts)


def _task(facts: Facts) -> str:
    summaries = {str(recipe.get("summary", "")) for recipe in facts.recipes.values()} - {""}
    text = escape(describe.component(facts.recipe.get("task", "")))
    return text + "".join(f"<br>“{escape(summary)}”" for summary in sorted(summaries)) if text else ""


def _sizes(facts: Facts) -> str:
    """The number of parameters, once if all variants have the same."""
    sizes = {row.variant: row.parameters for row in facts.comparison.rows}
    if len(set(sizes.values())) == 1:
        return f"{next(iter(sizes.values())):,} parameters"
    return f"{min(sizes.values()):,} to {max(sizes.values()):,} parameters"


def _beside(facts: Facts) -> str:
    """What else of each variant is not that of the baseline, and what its score may be owed to; as `paddle-tfm diff`
    says it."""
    base, *others = facts.sides()
    rows = []
    for side in others:
        name = f"<bdi>{escape(side.name)}</bdi>"
        for gap in gaps(base, side):
            if gap.section != SETTINGS:  # these are in the table above
                texts = f"{gap.section}: {gap.what}", describe.component(gap.one), describe.component(gap.other)
                rows.append([name, *map(escape, texts)])
        for cost in confounds(base, side):
            what, _, meaning = cost.sentence.partition(": ")
            rows.append(
                [
                    name,
                    escape(what),
                    f"{cost.one:,.0f}",
                    f"{cost.other:,.0f}{escape(f' – {meaning}' if meaning else '')}",
                ]
            )
    if not rows:
        return ""
    caption = "What else differs from the baseline, and may be what a difference of scores is owed to"
    return "<h3>Beside the variant</h3>" + table(caption, ["variant", "what", "baseline", "here"], rows, texts=range(4))


def _variants(facts: Facts) -> str:
    """A row for each setting in which any variant differs from the baseline; what equals the baseline's is faint."""
    if len(facts.recipes) < 2 or not any(facts.recipes.values()):
        return ""
    changed = {
        name: {item.path: item for item in differences(facts.recipe, other)} for name, other in facts.recipes.items()
    }
    base = {item.path: item.one for items in changed.values() for item in items.values()}
    if not base:
        return "<p>The recipes of all variants are the same.</p>"
    rows = []
    for name, items in changed.items():
        is_base = name == facts.baseline
        cells = [f"<bdi>{escape(name)}</bdi>{' (baseline)' if is_base else ''}"]
        for path, value in base.items():
            text = escape(describe.component(items[path].other if path in items else value))
            cells.append(text if path in items or is_base else f'<span class="same">{text}</span>')
        rows.append(cells)
    caption = "The settings in which variants differ from the baseline; grey: as there. Everything else is the same."
    header = ["variant", *base]
    return "<h3>The variants</h3>" + table(caption, header, rows, texts=range(len(header)))
