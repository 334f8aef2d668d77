"""`paddle-tfm ls`: what there is."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import console, create_registry, echo, plugin_option
from paddle_tfm.cli.tables import emit, table_options
from paddle_tfm.errors import UserError, nearest, unknown
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.tabular import Table, column
from paddle_tfm.units import plural

WHAT = ("recipes", "components", "plugins", "runs")


def _complete_what(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in WHAT if name.startswith(incomplete)]


def complete_kind(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Kinds of components, where components are listed."""
    if context.params.get("what", "components") != "components":
        return []
    return [name for name in KINDS if name.startswith(incomplete)]


@click.command(name="ls")
@click.argument("what", default="recipes", metavar=f"[{'|'.join(WHAT)}]", shell_complete=_complete_what)
@click.argument("kind", required=False, metavar="[KIND]", shell_complete=complete_kind)
@click.option("--kind", "kind_option", hidden=True)  # how KIND was written before it was an argument
@click.option("--all", "with_wrong", is_flag=True, help="Components that are wrong on purpose too.")
@click.option("--out", default="runs", type=click.Path(path_type=Path), help="Where runs are. Default: runs.")
@table_options
@plugin_option
def command(what: str, kind: str | None, kind_option: str | None, with_wrong: bool, out: Path, form, plugins) -> None:
    """List recipes, components (all, or those of one KIND), plugins or runs.

    `paddle-tfm show norm:rms` says all about one component.

    \b
    Examples:
      paddle-tfm ls
      paddle-tfm ls components norm
      paddle-tfm ls components --all
      paddle-tfm ls components search --json
      paddle-tfm ls runs
    """
    kind = kind or kind_option
    _refuse(what, kind)
    if what == "recipes":
        _recipes(form)
    elif what == "components":
        _components(plugins, kind, with_wrong, form)
    elif what == "plugins":
        from paddle_tfm.cli.plugin_list import print_plugins

        print_plugins(create_registry(plugins), form)
    else:
        _runs(out, form)


def _refuse(what: str, kind: str | None) -> None:
    """Raises UserError where what is asked for does not exist, with what was probably meant."""
    if what not in WHAT:
        if near := nearest(what.rstrip("s"), list(KINDS)).partition("'")[2].rstrip("'?"):
            raise UserError(f"'{what}' cannot be listed; did you mean `paddle-tfm ls components {near}`?")
        raise UserError(unknown("list", what, WHAT))
    if kind is None:
        return
    if what != "components":
        raise UserError(f"`ls {what}` takes no kind, but '{kind}' was passed; components have kinds")
    if kind not in KINDS:
        raise UserError(unknown("kind", kind, KINDS))


def _recipes(form: str | None) -> None:
    from paddle_tfm.recipe.reading import shipped
    from paddle_tfm.recipe.yaml_lines import load_file

    rows = []
    for name, file in sorted(shipped().items()):
        data = load_file(file)[0]
        rows.append({"name": name, "summary": data.get("summary", ""), "duration": data.get("duration", "")})
    columns = [
        column("name", style="cyan"),
        column("summary", "what it does", prose=True),
        column("duration", "takes", importance=50, prose=True),
    ]
    emit(Table(columns, rows, "Recipes (paddle-tfm run NAME)"), form)


def _components(plugins, kind: str | None, with_wrong: bool, form: str | None) -> None:
    registry = create_registry(plugins)
    tables, hidden = [], 0
    for each in [kind] if kind else KINDS:
        entries = [entry for entry in registry if entry.kind == each]
        listed = [entry for entry in entries if with_wrong or not entry.wrong_on_purpose]
        hidden += len(entries) - len(listed)
        rows = [
            {"kind": each, "name": entry.name, "summary": entry.summary(), "plugin": entry.provider.plugin}
            for entry in listed
        ]
        columns = [column("name", style="cyan"), column("summary", "what it is", prose=True)]
        if form is not None:
            columns = [column("kind"), *columns, column("plugin")]
        if listed:
            tables.append(Table(columns, rows, each))
    emit(tables, form)
    if form is None:
        example = f"{kind}:{tables[0].rows[0]['name']}" if kind and tables else "norm:rms"
        console().print(f"[dim]options, formula, paper, uses: paddle-tfm show {example}[/]")
        if hidden:
            console().print(f"{plural(hidden, 'component')} wrong on purpose not listed: add --all")


def _runs(out: Path, form: str | None) -> None:
    from paddle_tfm.files import folders_with

    rows = [_run(run) for run in folders_with(out, "identity.json")]
    if not rows and form is None:
        echo(f"No runs in {out}. Start one: paddle-tfm run quickstart")
        return
    columns = [column("folder", style="cyan"), column("result", prose=True)]
    emit(Table(columns, rows, "Runs"), form, rows)


def _run(folder: Path) -> dict[str, object]:
    """A run's results in a few words, and as numbers."""
    from paddle_tfm import units
    from paddle_tfm.train.forms import read_results

    row: dict[str, object] = {"folder": str(folder), "finished": False, "split": None, "scores": {}}
    file = folder / "results.json"
    if not file.is_file():
        return {**row, "result": "not finished: --resume"}
    try:
        results = read_results(folder, ("test", "valid", "diverged", "units"))
        split = "test" if results["test"] else "valid"
        words = ", ".join(
            f"{name} {units.text(float(value), results['units'].get(name, ''))}"
            for name, value in list(results[split].items())[:3]
        )
    except UserError as error:
        return {**row, "result": f"broken: {str(error).replace(str(file), file.name)}"}
    result = str(results["diverged"] or (words if split == "test" else f"{words} ({split})"))
    return {**row, "finished": True, "split": split, "scores": results[split], "result": result}
