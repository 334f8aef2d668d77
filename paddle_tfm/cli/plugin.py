"""`paddle-tfm plugin`: check that a component is right, write a new plugin, list what is installed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
import yaml

from paddle_tfm.cli.common import (
    console,
    count,
    create_registry,
    device_option,
    plugin_option,
    print_plugins,
    use_device,
)
from paddle_tfm.errors import UserError

KINDS = ("attention", "norm", "placement", "position", "feed_forward", "head")
COLOURS = {"pass": "green", "declared limit": "yellow", "fail": "red", "not here": "dim", "information": "cyan"}


@click.group(name="plugin")
def command() -> None:
    """Write plugins, and find out whether they are right.

    \b
    Examples:
      paddle-tfm plugin check rotary              a component that is installed
      paddle-tfm plugin check my_norm.py          your plugin file
      paddle-tfm plugin check --as attention my_transformer.py:MultiHeadAttention
      paddle-tfm plugin new my-norm --kind norm   a package of your own
      paddle-tfm plugin ls                        what is installed, and what failed to load
    """


@command.command(name="ls")
@plugin_option
def listing(plugins) -> None:
    """Each plugin with its version and what it registers; and what failed to load, with the reason."""
    print_plugins(create_registry(plugins))


# --------------------------------------------------------------------------------------------------------------- check


def _options(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, object]:
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"'{item}' must be NAME=VALUE")
        try:
            found[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[name] = value
    return found


def _complete_target(context: click.Context, parameter: click.Parameter, incomplete: str):
    """Names of components, also behind their kind, then files."""
    from click.shell_completion import CompletionItem

    entries = [entry for entry in create_registry() if not entry.wrong_on_purpose]
    names = {entry.name for entry in entries} | {f"{entry.kind}:{entry.name}" for entry in entries}
    found = [] if context.params.get("way") else sorted(name for name in names if name.startswith(incomplete))
    return [*map(CompletionItem, found), CompletionItem(incomplete, type="file")]


@command.command(name="check")
@click.argument("target", required=False, shell_complete=_complete_target)
@click.option(
    "--as",
    "way",
    type=click.Choice(("attention", "norm", "position", "encoder-decoder")),
    help="TARGET is an ordinary layer or a whole model, written without paddle_tfm.",
)
@click.option(
    "--option", "options", multiple=True, callback=_options, metavar="NAME=VALUE", help="For its constructor."
)
@click.option(
    "--mask",
    type=click.Choice(("allowed", "hidden", "additive")),
    help="With --as attention: what your mask says: True where it may look, True where it may not, or what is added to the "
    "scores. Default: worked out.",
)
@click.option("--pad-id", default=0, show_default=True, help="With --as encoder-decoder: the id of padding.")
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check (repeatable).")
@click.option("--kind", default=None, help="Without TARGET: all components of this kind.")
@click.option("--brief", is_flag=True, help="Print failures and declared limits only.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@plugin_option
@device_option
def examination(target, way, options, mask, pad_id, only, kind, brief, as_json, plugins, device) -> None:
    """Find out whether TARGET is right: a component's name (or kind:name), package.module:Class, FILE.py or FILE.py:Class.
    Without TARGET, all that is installed is checked.

    It is built alone and inside small real models, and each check prints one line: pass, declared limit (the class says why
    it does not hold), or fail, with what was seen, what it means and where to look. Exit status: 0 all is right, 1 a check
    failed, 2 it could not be checked.

    \b
    Examples:
      paddle-tfm plugin check rotary
      paddle-tfm plugin check norm:batch --only causal_in_training
      paddle-tfm plugin check my_norm.py:MyNorm --option eps=0.001
      paddle-tfm plugin check --as attention my_transformer.py:MultiHeadAttention
      paddle-tfm plugin check --as encoder-decoder my_transformer.py:Transformer --option num_layers=2
    """
    use_device(device or "cpu")
    from paddle_tfm.testing import checks
    from paddle_tfm.testing import target as targets

    registry = create_registry(plugins)
    if way is not None:
        if target is None:
            raise UserError(f"--as {way}: name a class, as in --as {way} my_transformer.py:MyClass")
        _known(only, [way], checks)
        told = _Told(brief, as_json, target)
        report = targets.examine_ordinary(way, target, options, mask, pad_id, registry, frozenset(only), told.outcome)
        told.end(report)
        return told.finish()
    if target is None:
        found = [each for each in targets.everything(registry) if kind in (None, each[0])]
        if not found:
            raise UserError(f"--kind {kind}: there is nothing to check of that kind")
    else:
        found = targets.find(target, registry)
    _known(only, {each[0] for each in found}, checks)
    from paddle_tfm.testing import examine

    told = _Told(brief or target is None, as_json, None)
    for of_kind, name in found:
        told.begin(f"{of_kind} {name}")
        try:
            told.end(examine(of_kind, name, options, registry, frozenset(only), told.outcome))
        except UserError as error:
            if len(found) == 1:
                raise
            told.refused(str(error))
    told.finish()
    return None


def _known(only: Sequence[str], kinds, checks) -> None:
    from paddle_tfm.errors import unknown

    known = {each.name for kind in kinds for each in checks(kind)}
    for name in only:
        if name not in known:
            raise UserError(f"--only: {unknown('check', name, known)}")


class _Told:
    """Prints what comes out, and remembers whether something failed."""

    def __init__(self, brief: bool, as_json: bool, title: str | None):
        self.brief, self.as_json, self.failed, self.reports = brief, as_json, 0, []
        if title is not None:
            self.begin(title)

    def begin(self, title: str) -> None:
        self.title, self.seen = title, 0
        if not self.as_json and not self.brief:
            console().print(f"[bold]{title}[/]")

    def outcome(self, outcome) -> None:
        from rich.markup import escape

        self.failed += outcome.status == "fail"
        if self.as_json or (self.brief and outcome.status not in ("fail", "declared limit")):
            return
        if self.brief and not self.seen:
            console().print(f"[bold]{self.title}[/]")
        self.seen += 1
        colour = COLOURS[outcome.status]
        seen = f"  {escape(outcome.seen)}" if outcome.seen else ""
        console().print(
            f"  [{colour}]{outcome.status:<14}[/] {outcome.check.name:<22}{seen or '  ' + escape(outcome.check.law)}"
        )
        if outcome.status == "fail":
            console().print(f"  {'':<14} [dim]the law[/]      {escape(outcome.check.law)}")
            console().print(f"  {'':<14} [dim]it means[/]     {escape(outcome.check.means)}")
            console().print(f"  {'':<14} [dim]look at[/]      {escape(outcome.check.look)}")

    def end(self, report) -> None:
        from rich.markup import escape

        self.reports.append(report)
        if self.as_json:
            return
        counts = {status: sum(each.status == status for each in report) for status in COLOURS}
        if not self.brief:
            for note in report.notes:
                console().print(f"  [dim]note[/]           {escape(note)}")
        said = ", ".join(f"[{COLOURS[status]}]{number} {status}[/]" for status, number in counts.items() if number)
        console().print(f"[bold]{self.title}[/]: {said}")

    def refused(self, sentence: str) -> None:
        from rich.markup import escape

        if not self.as_json:
            console().print(f"[bold]{self.title}[/]: not checked: {escape(sentence)}")

    def finish(self) -> None:
        if self.as_json:
            click.echo(json.dumps([_as_data(report) for report in self.reports], indent=1, ensure_ascii=False))
        elif self.failed:
            console().print(f"[red]{count(self.failed, 'check')} failed[/]")
        if self.failed:
            raise click.exceptions.Exit(1)


def _as_data(report) -> dict[str, object]:
    return {
        "kind": report.kind,
        "name": report.name,
        "notes": list(report.notes),
        "checks": [
            {"name": each.check.name, "status": each.status, "seen": each.seen, "law": each.check.law}
            for each in report
        ],
    }


# ----------------------------------------------------------------------------------------------------------------- new


@command.command(name="new")
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), default="norm", show_default=True, help="What it is.")
@click.option("--single-file", is_flag=True, help="One file for `--plugin` instead of a package.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where. Default: NAME in this directory.")
def new(name: str, kind: str, single_file: bool, out: Path | None) -> None:
    """Write a plugin that works as it is, for you to change: an installable package with the class, a test that runs the
    conformance kit, a recipe that compares it with the reference, and a README; or, with --single-file, one file.

    \b
    Examples:
      paddle-tfm plugin new my-norm --kind norm
      paddle-tfm plugin new my-encoding --kind position --single-file
    """
    from paddle_tfm.plugin_template import write

    written = write(name, kind, single_file, out)
    for path in written.files:
        click.echo(f"wrote {path}")
    click.echo("\n" + written.advice)
