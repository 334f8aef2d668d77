"""`paddle-tfm diff`: all in which two runs, or the variants of a recipe, differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, create_registry, plugin_option, use_device, warn
from paddle_tfm.cli.tables import emit, print_table, table_options
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.tabular import Column, Table, column

if TYPE_CHECKING:
    from paddle_tfm.comparison.sides import Side
    from paddle_tfm.recipe.expansion import Recipe
    from paddle_tfm.registry import Registry

VOCABULARY = 1_000  # pieces, of a recipe whose texts nobody has read
COUNTED = (
    f"parameters are counted with vocabularies of {VOCABULARY:,} pieces, tokens in batches that are full; "
    "`paddle-tfm run RECIPE --dry-run` measures tokens, time and memory"
)
FORMS = "give RUN RUN, a folder of runs, or RECIPE [VARIANT]..."


def complete(context: click.Context, parameter: click.Parameter, incomplete: str):
    """Recipes and folders first; behind a recipe its variants and overrides."""
    from paddle_tfm.cli.common import complete_override, complete_recipe
    from paddle_tfm.recipe import loading

    words: list[str] = [*(context.params.get("what") or ()), *context.args]
    first = words[0] if words else ""
    if not first:
        return complete_recipe(context, parameter, incomplete)
    if Path(first).is_dir():
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir")]
    context.params["recipe"] = first
    if "=" in incomplete or "." in incomplete:
        return complete_override(context, parameter, incomplete)
    try:
        return [name for name in loading.load(first).variants() if name.startswith(incomplete)]
    except UserError:
        return []


@click.command(name="diff")
@click.argument("what", nargs=-1, required=True, metavar="RUN RUN|RECIPE [VARIANT]...", shell_complete=complete)
@table_options
@plugin_option
def command(what: Sequence[str], form: str | None, plugins) -> None:
    """All in which two runs differ, or the variants of a recipe: settings with the defaults of components, who provides
    these in which version, texts, Paddle's build, the machine, and whether that can change the last bits of numbers;
    and what a difference of their scores may be owed to beside the variant: parameters, operations and tokens of
    training; of runs also time, memory and time of decoding.

    Of a folder of runs or a recipe, each variant is put beside the baseline; VARIANTs choose, the first of two being
    the baseline. A recipe takes a.b=value too.

    \b
    Examples:
      paddle-tfm diff runs/reverse/default/seed-1 runs/rms/default/seed-1
      paddle-tfm diff runs/quickstart
      paddle-tfm diff compare-norms layer batch
      paddle-tfm diff reverse model.norm=layer,rms --json
      paddle-tfm diff reverse "model.position=none,{name: shaw, clip: 4}"
    """
    registry = create_registry(plugins)
    base, *others = _of_folders(what) if Path(what[0]).is_dir() else _of_recipe(what, registry)
    _show(base, others, registry, form)


def _of_folders(what: Sequence[str]) -> list[Side]:
    """The sides that folders hold: two of one variant each, or all variants of one."""
    folders = [Path(each) for each in what]
    if not 1 <= len(folders) <= 2 or not all(folder.is_dir() for folder in folders):
        wrong = next((each for each in what if not Path(each).is_dir()), " ".join(what))
        raise UserError(f"{wrong}: {'is no folder' if wrong in what else 'are too many'}; {FORMS}")
    if len(folders) == 1:
        sides = _variants(folders[0])
        if len(sides) == 1:
            raise UserError(f"{folders[0]} holds one variant; {FORMS}")
        return sides
    sides = []
    for folder in folders:
        inside = _variants(folder)
        if len(inside) > 1:
            names = ", ".join(side.name for side in inside)
            raise UserError(f"{folder} holds {len(inside)} variants, {names}; name the folder of one of them")
        sides += inside
    return sides


def _variants(folder: Path) -> list[Side]:
    """The variants in a folder, the recorded baseline first; a run or the runs of one variant are one."""
    from paddle_tfm.cli.compare import recorded_baseline
    from paddle_tfm.comparison.runs.finished import collect
    from paddle_tfm.comparison.runs.sizes import at_largest
    from paddle_tfm.comparison.sides import of_runs
    from paddle_tfm.files import folders_with
    from paddle_tfm.recipe.tuning import is_beside
    from paddle_tfm.train.forms import RESULTS

    inner = folders_with(folder, "identity.json", "results.json")
    inner = [run for run in inner if not is_beside(run)] or inner
    if not inner:
        raise UserError(f"{folder}: no run is here; `paddle-tfm ls runs` shows where runs are")
    groups: dict[Path, list[Path]] = {}
    for run in inner:
        groups.setdefault(run.parent, []).append(run)
    finished = [run for run in inner if (run / RESULTS).is_file()]
    where = finished if is_beside(inner[0]) else [folder]  # of a folder, what is damaged is left out
    results = collect(where, with_curves=False, warn=warn) if finished else []
    _, smaller = at_largest(results)
    for result in smaller:
        groups.pop(result.folder.parent, None)  # a ladder's variants are compared at their largest size
    baseline = recorded_baseline(results) if results else None
    ordered = sorted(groups, key=lambda parent: parent.name != baseline)
    single = len(groups) == 1
    return [of_runs(str(folder) if single else parent.name, groups[parent]) for parent in ordered]


def _of_recipe(what: Sequence[str], registry: Registry) -> list[Side]:
    """The variants of a recipe that are named, or all; the baseline first."""
    from paddle_tfm.recipe import loading as recipes

    names = [each for each in what[1:] if "=" not in each]
    recipe = recipes.load(what[0], [each for each in what[1:] if "=" in each])
    use_device("cpu")
    known = list(recipe.variants())
    for name in names:
        if name not in known:
            raise UserError(f"{recipe.source}: {unknown('variant', name, known)}")
    if len(known) == 1:
        raise UserError(f"{recipe.source} has one variant, '{known[0]}'; {FORMS}")
    baseline, *others = recipe.largest_variants()
    chosen = names if len(names) > 1 else [baseline, *(names or others)]
    chosen = list(dict.fromkeys(chosen))
    if len(chosen) == 1:
        raise UserError(f"'{chosen[0]}' is the baseline itself; name another variant: {', '.join(known)}")
    return [_planned(recipe, name, registry) for name in chosen]


def _planned(recipe: Recipe, variant: str, registry: Registry) -> Side:
    from paddle_tfm.comparison.sides import ALL, Side
    from paddle_tfm.model.build import build
    from paddle_tfm.model.cache_size import cache_bytes
    from paddle_tfm.model.size import matrix_parameters, num_parameters, training_flops
    from paddle_tfm.recipe.plan import plan_run
    from paddle_tfm.train.changes import PLUGINS

    run = next(run for run in recipe.runs() if run.variant == variant)
    plan = plan_run(run, registry).require_sound(recipe.source)
    files = {f"{plugin} (file)": file for plugin, file in plan.plugin_files().items()}
    model = build(plan.sound_model, VOCABULARY, VOCABULARY)
    train = plan.settings.train
    costs: dict[str, float | None] = {
        "parameters": num_parameters(model),
        "flops_per_token": training_flops(matrix_parameters(model), 1),
        "tokens": train.steps * train.accumulate * train.max_tokens,
        "cache_bytes": cache_bytes(model),
    }
    known = {cost: {ALL: value} for cost, value in costs.items() if value is not None}
    return Side(variant, run.data, {PLUGINS: {**plan.providers(), **files}}, known)


def _show(base: Side, others: Sequence[Side], registry: Registry, form: str | None) -> None:
    """A table for each of the others beside the base, and what the differences are confounded with."""
    from dataclasses import replace

    from rich.text import Text

    from paddle_tfm.comparison.report.recipe_words import component
    from paddle_tfm.comparison.sides import confounds, gaps, last_bits
    from paddle_tfm.recipe.defaults import with_defaults

    base, *others = (replace(side, recipe=with_defaults(side.recipe, registry)) for side in (base, *others))
    tables, data = [], []
    for side in others:
        rows = [
            {
                "section": gap.section,
                "what": gap.what,
                "one": component(gap.one),
                "other": component(gap.other),
                "last_bits": last_bits(gap),
            }
            for gap in gaps(base, side)
        ]
        costs = list(confounds(base, side))
        tables.append((side, _table(base, side, rows), costs))
        numbers = [cost._asdict() for cost in costs]
        data.append({"one": base.name, "other": side.name, "differences": rows, "confounds": numbers})
    if form is not None:
        emit([table for _, table, _ in tables], form, data)
        return
    for i, (side, table, costs) in enumerate(tables):
        if i:
            console().print()
        _print(base, side, table, [cost.sentence for cost in costs])
    if all("seconds" not in side.costs and "peak_memory_mib" not in side.costs for side in others):  # of a recipe
        console().print(Text(COUNTED, style="dim"), soft_wrap=True)


def _table(base: Side, side: Side, rows: Sequence[dict]) -> Table:
    columns: list[Column] = [
        column("section", importance=10, style="dim"),
        column("what", "difference", style="cyan"),
        column("one", base.name, prose=True),
        column("other", side.name, prose=True),
    ]
    if any(row["last_bits"] for row in rows):
        columns.append(column("last_bits", "what it does to last bits", prose=True))
    return Table(columns, rows, f"{side.name} beside {base.name}")


def _print(base: Side, side: Side, table: Table, sentences: Sequence[str]) -> None:
    from rich.text import Text

    if not table.rows:
        console().print(Text(f"{side.name} beside {base.name}: nothing differs"))
    else:
        print_table(table, "in --json and --csv")
    for sentence in sentences:
        console().print(Text(sentence, style="yellow"))
