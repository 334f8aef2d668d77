"""`paddle-tfm ls`: what there is."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import console, count, create_registry, plugin_option, print_plugins, print_table

WHAT = ("recipes", "components", "plugins", "runs")


@click.command(name="ls")
@click.argument("what", type=click.Choice(WHAT), default="recipes", metavar="[recipes|components|plugins|runs]")
@plugin_option
@click.option("--kind", default=None, help="Only components of this kind, for instance norm.")
@click.option("--all", "with_wrong", is_flag=True, help="Components that are wrong on purpose too.")
@click.option("--out", default="runs", type=click.Path(path_type=Path), help="Where runs are. Default: runs.")
def command(what: str, plugins, kind, with_wrong, out) -> None:
    """List recipes, components, plugins or runs.

    \b
    Examples:
      paddle-tfm ls
      paddle-tfm ls components --kind norm
      paddle-tfm ls components --all
      paddle-tfm ls runs
    """
    if what == "recipes":
        _recipes()
    elif what == "components":
        _components(plugins, kind, with_wrong)
    elif what == "plugins":
        print_plugins(create_registry(plugins))
    else:
        _runs(out)


def _recipes() -> None:
    from paddle_tfm.recipe.loading import shipped
    from paddle_tfm.recipe.yaml_lines import load_file

    rows = []
    for name, file in sorted(shipped().items()):
        data = load_file(file)[0]
        rows.append([name, str(data.get("summary", "")), str(data.get("duration", ""))])
    print_table("Recipes (paddle-tfm run NAME)", ["name", "what it does", "takes"], rows)


def _components(plugins, kind: str | None, with_wrong: bool) -> None:
    from paddle_tfm.errors import UserError, unknown
    from paddle_tfm.hookspecs import KINDS

    if kind is not None and kind not in KINDS:
        raise UserError(f"--kind: {unknown('kind', kind, KINDS)}")
    registry = create_registry(plugins)
    hidden = 0
    for name in [kind] if kind else KINDS:
        entries = [entry for entry in registry if entry.kind == name]
        listed = [entry for entry in entries if with_wrong or not entry.wrong_on_purpose]
        hidden += len(entries) - len(listed)
        if listed:
            print_table(name, ["name", "what it is"], [[entry.name, entry.summary()] for entry in listed])
            console().print()
    if hidden:
        console().print(f"{count(hidden, 'component')} wrong on purpose not listed: add --all")


def _runs(out: Path) -> None:
    rows = [[str(file.parent), _state(file.parent)] for file in sorted(out.rglob("identity.json"))]
    if not rows:
        click.echo(f"No runs in {out}. Start one: paddle-tfm run quickstart")
        return
    print_table("Runs", ["folder", "result"], rows)


def _state(folder: Path) -> str:
    """A run's results in a few words."""
    from paddle_tfm import units
    from paddle_tfm.errors import UserError
    from paddle_tfm.files import read_json

    file = folder / "results.json"
    if not file.is_file():
        return "not finished: --resume"
    try:
        results = read_json(file, ("test", "valid", "diverged", "units"))
        split = "test" if results["test"] else "valid"
        scores = ", ".join(
            f"{name} {units.text(float(value), results['units'].get(name, ''))}"
            for name, value in list(results[split].items())[:3]
        )
    except UserError as error:
        return f"broken: {str(error).replace(str(file), file.name)}"
    except (AttributeError, TypeError, ValueError):
        return f"broken: {file.name}: damaged: it holds no scores"
    return str(results["diverged"] or (scores if split == "test" else f"{scores} ({split})"))
