"""`paddle-tfm plugin check`: what a user names is found, examined by the conformance kit, and reported."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import click

from paddle_tfm.cli.check_report import ReportPrinter
from paddle_tfm.cli.common import create_registry, device_option, plugin_option, use_device
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.hookspecs import KINDS, LISTENER
from paddle_tfm.ordinary_layers import AS_KINDS
from paddle_tfm.recipe import yaml_lines

EXAMINED = (*KINDS, LISTENER)
REFERENCE = "reference"  # the check that --reference adds


def _options(context: click.Context, parameter: click.Parameter, items: Sequence[str]) -> dict[str, object]:
    options = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"'{item}' must be NAME=VALUE")
        options[name] = yaml_lines.value(value)
    return options


def _complete_target(context: click.Context, parameter: click.Parameter, incomplete: str):
    """Names of components, also behind their kind, then files."""
    from click.shell_completion import CompletionItem

    entries = [entry for entry in create_registry() if not entry.wrong_on_purpose]
    names = {entry.name for entry in entries} | {f"{entry.kind}:{entry.name}" for entry in entries}
    matching = [] if context.params.get("as_kind") else sorted(name for name in names if name.startswith(incomplete))
    return [*map(CompletionItem, matching), CompletionItem(incomplete, type="file")]


@click.command(name="check")
@click.argument("target", required=False, shell_complete=_complete_target)
@click.option(
    "--as",
    "as_kind",
    type=click.Choice(AS_KINDS),
    help="TARGET is an ordinary layer or a whole model, written without paddle_tfm.",
)
@click.option(
    "--option", "options", multiple=True, callback=_options, metavar="NAME=VALUE", help="For its constructor."
)
@click.option(
    "--mask",
    type=click.Choice(("allowed", "hidden", "additive")),
    help="With --as attention: what your mask says: True where it may look, True where it may not, or what is added "
    "to the scores. Default: worked out.",
)
@click.option("--pad-id", type=int, help="With --as encoder-decoder: the id of padding. Default: 0.")
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check (repeatable).")
@click.option(
    "--reference",
    metavar="FILE.py[:NAME]",
    help="Also compare values and gradients with this: a function in NumPy, the class whose docstring holds one, or a "
    "torch.nn.Module.",
)
@click.option("--kind", metavar="KIND", help="All components of this kind; with TARGET, those that it names.")
@click.option("--all", "with_wrong", is_flag=True, help="Without TARGET: also what is wrong on purpose.")
@click.option("--brief", is_flag=True, help="Print failures and expected failures only.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@plugin_option
@device_option
def examination(
    target, as_kind, options, mask, pad_id, only, reference, kind, with_wrong, brief, as_json, plugins, device
) -> None:
    """Find out whether TARGET is right: a component's name (or kind:name), package.module:Class, FILE.py or
    FILE.py:Class. Without TARGET, all that is installed is checked, but for what is wrong on purpose.

    It is built alone and inside small real models, and each check prints one line: pass, expected failure (the class
    says why the invariant does not hold), or fail, with what was seen, its consequence and a hint. The first
    line of a report with failures names the most likely cause. Exit status: 0 all is right, 1 a check failed, 2 it
    could not be checked.

    \b
    Examples:
      paddle-tfm plugin check rotary
      paddle-tfm plugin check norm:batch --only causal_in_training
      paddle-tfm plugin check my_norm.py:MyNorm --option eps=0.001
      paddle-tfm plugin check my_norm.py --reference my_norm_numpy.py
      paddle-tfm plugin check --as attention my_transformer.py:MultiHeadAttention
      paddle-tfm plugin check --as encoder-decoder my_transformer.py:Transformer --option num_layers=2
    """
    if mask is not None:
        _refuse_for_others("--mask", "attention", as_kind)
    if pad_id is not None:
        _refuse_for_others("--pad-id", "encoder-decoder", as_kind)
    use_device(device or "cpu")
    from paddle_tfm.testing import checks
    from paddle_tfm.testing import target as targets

    registry = create_registry(plugins)
    if as_kind is not None:
        if target is None:
            raise UserError(f"--as {as_kind}: name a class, as in --as {as_kind} my_transformer.py:MyClass")
        if reference is not None:
            raise UserError("--reference compares components of paddle_tfm, but --as names an ordinary layer")
        if kind is not None:
            raise UserError(
                f"--kind chooses among components of paddle_tfm, but --as {as_kind} names an ordinary layer"
            )
        if REFERENCE in only:
            raise UserError(
                f"--only {REFERENCE}: there is none with --as {as_kind}, but only of components of paddle_tfm"
            )
        _refuse_unknown(only, [as_kind], checks)
        printer = ReportPrinter(brief, as_json)
        with printer.component(target):
            cls = targets.ordinary_class(target, as_kind)
            report = targets.examine_class(
                as_kind, cls, options, mask, pad_id or 0, registry, frozenset(only), printer.outcome
            )
            printer.end(report)
        return printer.finish()
    _refuse_kind(kind, checks)
    if target is not None and with_wrong:
        raise UserError("--all is for a check without TARGET; what is wrong on purpose can be named, as others are")
    named = targets.everything(registry, with_wrong) if target is None else targets.find(target, registry)
    components = [each for each in named if kind in (None, each[0])]
    if not components:
        names = ", ".join(f"{each} '{name}'" for each, name in named) if target is not None else ""
        what = f"TARGET is {names}" if names else "there is nothing to check of that kind"
        raise UserError(f"--kind {kind}: {what}")
    unchecked = [each for each in components if not checks(each[0])]
    if len(unchecked) == len(components):
        raise UserError("; ".join(_no_checks(each, checks) for each in unchecked))
    if reference is not None and (target is None or len(components) > 1):
        raise UserError(f"--reference is of one component, but {target or 'all'} is {len(components)}: name one")
    _refuse_unknown(only, {each[0] for each in components}, checks, {REFERENCE} if reference is not None else set())
    against = _reference(reference, *components[0], options, registry) if reference is not None else None
    from paddle_tfm.testing import examine

    printer = ReportPrinter(brief or target is None, as_json)
    for component_kind, name in components:
        with printer.component(f"{component_kind} {name}"):
            if not checks(component_kind):
                printer.refusal(_no_checks((component_kind, name), checks))
                continue
            try:
                report = examine(component_kind, name, options, registry, frozenset(only), printer.outcome)
                if against is not None:
                    beside = against.outcome()
                    printer.outcome(beside)
                    report = replace(report, outcomes=(*report.outcomes, beside))
                if sentence := targets.not_registered(component_kind, name, registry):
                    report = replace(report, notes=(*report.notes, sentence))
                printer.end(report)
            except UserError as error:
                if len(components) == 1:
                    raise
                printer.refusal(str(error))
    printer.finish()
    return None


def _refuse_for_others(option: str, its_kind: str, as_kind: str | None) -> None:
    """Raises UserError where an option of one way to call an ordinary layer stands beside another."""
    if as_kind != its_kind:
        beside = "without --as" if as_kind is None else f"beside --as {as_kind}"
        raise UserError(f"{option} belongs to --as {its_kind}, and says nothing {beside}")


def _reference(text: str, kind: str, name: str, options, registry):
    """What --reference names, tried before any check: what is wrong with it is found in seconds, not after minutes."""
    from paddle_tfm.testing.reference import Reference

    return Reference(text, kind, name, options, registry)


def _no_checks(component: tuple[str, str], checks) -> str:
    """Why a component cannot be examined."""
    examined = ", ".join(kind for kind in EXAMINED if checks(kind))
    return f"{component[0]} '{component[1]}': there are no checks of this kind yet; the kit examines {examined}"


def _refuse_kind(kind: str | None, checks) -> None:
    """Raises UserError where --kind is no kind, or one without checks."""
    if kind is not None and kind not in EXAMINED:
        raise UserError(f"--kind: {unknown('kind', kind, EXAMINED)}")
    if kind is not None and not checks(kind):
        examined = ", ".join(each for each in EXAMINED if checks(each))
        raise UserError(f"--kind {kind}: there are no checks of this kind yet; the kit examines {examined}")


def _refuse_unknown(only: Sequence[str], kinds, checks, others: Collection[str] = ()) -> None:
    """Raises UserError where --only names no check of these kinds, and none of `others`."""
    known = {each.name for kind in kinds for each in checks(kind)} | {*others}
    for name in only:
        if name == REFERENCE and name not in known:
            raise UserError(
                f"--only {name}: it needs --reference FILE.py, which holds what a component is compared with"
            )
        if name not in known:
            raise UserError(f"--only: {unknown('check', name, known)}")
