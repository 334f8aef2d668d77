"""`paddle-tfm ls`: what there is."""

from __future__ import annotations

import difflib
from pathlib import Path

import click
from click.core import ParameterSource

from paddle_tfm.cli.common import console, create_registry, plugin_option
from paddle_tfm.cli.tables import emit, table_options
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.language import _, counted
from paddle_tfm.tabular import Table, column

WHAT = ("recipes", "components", "plugins", "runs", "data")
OPTIONS = {"all": "components", "follow": "runs", "fetch": "data"}  # option → of what


def _complete_what(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in WHAT if name.startswith(incomplete)]


def _complete_name(context: click.Context, parameter: click.Parameter, incomplete: str):
    """Kinds of components, names of datasets, or folders."""
    from click.shell_completion import CompletionItem

    what, names = context.params.get("what"), list[str]()
    if what == "runs":
        return [CompletionItem(incomplete, type="dir")]
    if what in ("components", "data"):
        names = list(KINDS) if what == "components" else create_registry().names("dataset")
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _complete_setting(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Options of the dataset on the command line."""
    from paddle_tfm.options import parameters

    try:
        options = parameters(create_registry().entry("dataset", context.params.get("name") or "").load())
    except UserError:
        return []
    return [f"{option}=" for option in options if option.startswith(incomplete)]


@click.command(name="ls")
@click.argument("what", default="recipes", metavar=f"[{'|'.join(WHAT)}]", shell_complete=_complete_what)
@click.argument("name", required=False, metavar="[KIND|FOLDER|DATASET]", shell_complete=_complete_name)
@click.argument("settings", nargs=-1, metavar="[option=value]...", shell_complete=_complete_setting)
@click.option("--all", "with_wrong", is_flag=True, help="Components that are wrong on purpose too.")
@click.option(
    "--follow", is_flag=True, help="Of runs: update the table until all are finished. Ctrl-C ends only the table."
)
@click.option(
    "--fetch", is_flag=True, help="Fetch the files of a dataset now, for a machine that has no network later."
)
@table_options
@plugin_option
def command(what, name, settings, with_wrong, follow, fetch, form, plugins) -> None:
    """List recipes, components (all, or those of one KIND), plugins, runs or datasets.

    `paddle-tfm show norm:rms` says all about one component.

    Runs: how far those in FOLDER are (default: runs), what has died and how to continue it, and what finished sweeps
    found. Only files are read, so any machine that shares them will do. --follow shows this until all runs are
    finished, and ends with the verdict; without a terminal it prints a line whenever a run's state changes.

    Datasets: corpora that a recipe names, as in `task: {name: parallel, dataset: multi30k}`, what each is, how large,
    and whether its files are here: in the folder of the environment variable PADDLE_TFM_DATA, by default in your cache
    folder. Of one DATASET: its home, licence and files, how many pairs it has, and the first ones.
    `paddle-tfm run` fetches what a recipe needs by itself.

    \b
    Examples:
      paddle-tfm ls
      paddle-tfm ls components norm
      paddle-tfm ls components search --json
      paddle-tfm ls runs
      paddle-tfm ls runs runs/quickstart --follow
      paddle-tfm ls runs runs/quickstart --json | jq '.runs[] | select(.state == "killed")'
      paddle-tfm ls data
      paddle-tfm ls data multi30k source=en target=fr --fetch

    \b
    States of a run:
      waiting     nobody has begun it
      running     with its loss, its speed and the time left; starting: no step yet, scoring: all steps are done
      done        with its score; diverged: its loss became no number
      stopped     its process ended in order, and --resume continues it
      killed      its process is gone: --resume continues at its last checkpoint
      silent      another machine claimed it, and nothing is heard from there
      unreadable  its files cannot be read
    """
    _refuse(what, name, settings)
    if what == "recipes":
        _recipes(form)
    elif what == "components":
        _components(plugins, name, with_wrong, form)
    elif what == "plugins":
        _plugins(plugins, form)
    elif what == "runs":
        from paddle_tfm.cli.ls.runs import follow_runs, list_runs

        if follow and form:
            text = _("--follow updates a table for people, --{form} is for programs; use one of the two")
            raise UserError(text.format(form=form))
        follow_runs(Path(name or "runs")) if follow else list_runs(name, form)
    else:
        from paddle_tfm.cli.ls.data import list_datasets, show_dataset

        registry = create_registry(plugins)
        if name is None:
            list_datasets(registry, form)
        else:
            show_dataset(registry, name, settings, fetch, form)


def _refuse(what: str, name: str | None, settings: tuple[str, ...]) -> None:
    """Raises UserError where what is asked for does not exist, with what was probably meant."""
    if what not in WHAT:
        if near := difflib.get_close_matches(what.rstrip("s"), list(KINDS), n=1):
            text = _("'{what}' cannot be listed; did you mean `paddle-tfm ls components {near}`?")
            raise UserError(text.format(what=what, near=near[0]))
        raise UserError(unknown("list", what, WHAT))
    for option, of in OPTIONS.items():
        parameter = "with_wrong" if option == "all" else option
        if what != of and click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            text = _("--{option} goes with `ls {of}`, and not with `ls {what}`; leave it out")
            raise UserError(text.format(option=option, of=of, what=what))
    if name is not None and what in ("recipes", "plugins"):
        text = _("`ls {what}` takes no name, but '{name}' was given; `ls components` takes a kind, `ls runs` a folder")
        raise UserError(text.format(what=what, name=name))
    if settings and what != "data":
        text = _("`ls {what}` takes no settings, but '{setting}' was given; `ls data NAME` does")
        raise UserError(text.format(what=what, setting=settings[0]))
    if what == "components" and name is not None and name not in KINDS:
        raise UserError(unknown("kind", name, KINDS))
    if what == "data" and name is None and click.get_current_context().params["fetch"]:
        raise UserError(_("--fetch: which dataset? `paddle-tfm ls data` lists them; then `ls data NAME --fetch`"))


def _recipes(form: str | None) -> None:
    from paddle_tfm.recipe.reading import shipped
    from paddle_tfm.recipe.yaml_lines import load_file

    rows = []
    for name, file in sorted(shipped().items()):
        data = load_file(file)[0]
        rows.append({"name": name, "summary": data.get("summary", ""), "duration": data.get("duration", "")})
    columns = [
        column("name", style="cyan"),
        column("summary", "what it does", _, prose=True),
        column("duration", "takes", _, importance=50, prose=True),
    ]
    emit(Table(columns, rows, _("Recipes (paddle-tfm run NAME)")), form)


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
        columns = [column("name", style="cyan"), column("summary", "what it is", _, prose=True)]
        if form is not None:
            columns = [column("kind"), *columns, column("plugin")]
        if listed:
            tables.append(Table(columns, rows, each))
    emit(tables, form)
    if form is None:
        example = f"{kind}:{tables[0].rows[0]['name']}" if kind and tables else "norm:rms"
        console().print(f"[dim]{_('options, formula, paper, uses:')} paddle-tfm show {example}[/]")
        if hidden:
            text = _("{components} wrong on purpose not listed: add --all")
            console().print(text.format(components=counted(hidden, "component")))


def _plugins(plugins, form: str | None) -> None:
    """A row a plugin, then failures and conflicts; as JSON those are rows of the same list."""
    from rich.markup import escape

    from paddle_tfm.plugins import hooks_of

    registry = create_registry(plugins)
    rows = []
    for name, provider in registry.plugins.providers.items():
        entries = [entry for entry in registry if entry.provider.plugin == name]
        others = [hook for hook in hooks_of(registry.plugins, name) if hook not in KINDS.values()]
        registers = [*(f"{entry.kind}:{entry.name}" for entry in entries), *others]
        source = f"{provider.source} {provider.version}"
        rows.append({"plugin": name, "from": source, "registers": registers, "failure": None})
    failures = registry.plugins.failures
    if form is not None:
        rows += [{"plugin": name, "from": None, "registers": [], "failure": text} for name, text in failures.items()]
    columns = [
        column("plugin", style="cyan"),
        column("from", importance=50),
        column("registers", text=", ".join, prose=True),
        column("failure", importance=1),
    ]
    emit(Table(columns if form else columns[:-1], rows, "Plugins"), form)
    if form is not None:
        return
    for name, failure in failures.items():
        console().print(f"[red]{escape(name)} failed to load:[/] {escape(failure)}")
    for sentence in registry.conflicts.values():
        console().print(f"[red]{escape(sentence)}[/]")
