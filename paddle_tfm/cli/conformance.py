"""How `paddle-tfm plugin check` examines: what is named is found, given to the conformance kit, and reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paddle_tfm.cli.plugin_check_report import ReportPrinter
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.hookspecs import KINDS, LISTENER
from paddle_tfm.registry import Registry
from paddle_tfm.testing import Report, checks, examine, lookup
from paddle_tfm.testing.reference.compared import Reference

EXAMINED = (*KINDS, LISTENER)
REFERENCE = "reference"  # the check that --reference adds


@dataclass(frozen=True)
class Request:
    """The argument and the options of `plugin check`, by their names; its help says what each means."""

    target: str | None
    as_kind: str | None
    options: Mapping[str, object]
    mask: str | None
    pad_id: int | None
    only: Sequence[str]
    reference: str | None
    kind: str | None
    with_wrong: bool
    brief: bool
    as_json: bool

    def require_sound(self) -> None:
        """Raises UserError where an option of one way to call an ordinary layer stands beside another."""
        beside = "without --as" if self.as_kind is None else f"beside --as {self.as_kind}"
        for option, value, its_kind in (
            ("--mask", self.mask, "attention"),
            ("--pad-id", self.pad_id, "encoder-decoder"),
        ):
            if value is not None and self.as_kind != its_kind:
                raise UserError(f"{option} belongs to --as {its_kind}, and says nothing {beside}")

    def require_class(self, as_kind: str) -> str:
        """The class that --as is about. Raises UserError: there is none, or an option is of components only."""
        if self.target is None:
            raise UserError(f"--as {as_kind}: name a class, as in --as {as_kind} my_transformer.py:MyClass")
        if self.reference is not None:
            raise UserError("--reference compares components of paddle_tfm, but --as names an ordinary layer")
        if self.kind is not None:
            raise UserError(
                f"--kind chooses among components of paddle_tfm, but --as {as_kind} names an ordinary layer"
            )
        if REFERENCE in self.only:
            raise UserError(
                f"--only {REFERENCE}: there is none with --as {as_kind}, but only of components of paddle_tfm"
            )
        return self.target


def examine_ordinary(wanted: Request, as_kind: str, registry: Registry) -> None:
    """Examine an ordinary layer, or a whole model.

    Raises:
        UserError: there is no such class, or an option does not fit.
        click.exceptions.Exit: a check failed.
    """
    target = wanted.require_class(as_kind)
    _refuse_unknown(wanted.only, [as_kind])
    printer, only = ReportPrinter(wanted.brief, wanted.as_json), frozenset(wanted.only)
    with printer.component(target):
        cls, pad_id = lookup.ordinary_class(target, as_kind), wanted.pad_id or 0
        report = lookup.examine_class(
            as_kind, cls, wanted.options, wanted.mask, pad_id, registry, only, printer.outcome
        )
        printer.end(report)
    printer.finish()


def examine_components(wanted: Request, registry: Registry) -> None:
    """Examine every component that is named, or all.

    Raises:
        UserError: nothing of that name is to be checked, or an option does not fit.
        click.exceptions.Exit: a check failed, or one of several components could not be checked.
    """
    components = _chosen(wanted, registry)
    against = _reference(wanted, components, registry)
    printer = ReportPrinter(wanted.brief or wanted.target is None, wanted.as_json)
    for kind, name in components:
        with printer.component(f"{kind} {name}"):
            if not checks(kind):
                printer.refusal(_no_checks((kind, name)))
                continue
            try:
                printer.end(_report(wanted, kind, name, registry, against, printer))
            except UserError as error:
                if len(components) == 1:
                    raise
                printer.refusal(str(error))
    printer.finish()


def _report(
    wanted: Request, kind: str, name: str, registry: Registry, against: Reference | None, printer: ReportPrinter
) -> Report:
    """What came out of the checks of one component, and of --reference."""
    report = examine(kind, name, wanted.options, registry, frozenset(wanted.only), printer.outcome)
    if against is not None:
        beside = against.outcome()
        printer.outcome(beside)
        report = replace(report, outcomes=(*report.outcomes, beside))
    if sentence := lookup.not_registered(kind, name, registry):
        report = replace(report, notes=(*report.notes, sentence))
    return report


def _chosen(wanted: Request, registry: Registry) -> list[tuple[str, str]]:
    """(kind, name) of what TARGET and --kind name. Raises UserError: nothing of it can be examined."""
    target, kind = wanted.target, wanted.kind
    _refuse_kind(kind)
    if target is not None and wanted.with_wrong:
        raise UserError("--all is for a check without TARGET; what is wrong on purpose can be named, as others are")
    named = lookup.everything(registry, wanted.with_wrong) if target is None else lookup.find(target, registry)
    components = [each for each in named if kind in (None, each[0])]
    if not components:
        names = ", ".join(f"{each} '{name}'" for each, name in named) if target is not None else ""
        what = f"TARGET is {names}" if names else "there is nothing to check of that kind"
        raise UserError(f"--kind {kind}: {what}")
    unchecked = [each for each in components if not checks(each[0])]
    if len(unchecked) == len(components):
        raise UserError("; ".join(_no_checks(each) for each in unchecked))
    return components


def _reference(wanted: Request, components: Sequence[tuple[str, str]], registry: Registry) -> Reference | None:
    """What --reference names, tried before any check: what is wrong with it is found in seconds, not after minutes."""
    text = wanted.reference
    if text is not None and (wanted.target is None or len(components) > 1):
        named = wanted.target or "all"
        if named.endswith(".py"):
            one = f", {named}:CLASS"
        else:
            one = f": {' or '.join(f'{kind}:{name}' for kind, name in components)}" if wanted.target else ""
        raise UserError(f"--reference is of one component, but {named} is {len(components)}; name one{one}")
    _refuse_unknown(wanted.only, {kind for kind, _ in components}, {REFERENCE} if text is not None else set())
    return Reference(text, *components[0], wanted.options, registry) if text is not None else None


def _examined() -> str:
    return ", ".join(kind for kind in EXAMINED if checks(kind))


def _no_checks(component: tuple[str, str]) -> str:
    """Why a component cannot be examined."""
    return f"{component[0]} '{component[1]}': there are no checks of this kind yet; the kit examines {_examined()}"


def _refuse_kind(kind: str | None) -> None:
    """Raises UserError where --kind is no kind, or one without checks."""
    if kind is not None and kind not in EXAMINED:
        raise UserError(f"--kind: {unknown('kind', kind, EXAMINED)}")
    if kind is not None and not checks(kind):
        raise UserError(f"--kind {kind}: there are no checks of this kind yet; the kit examines {_examined()}")


def _refuse_unknown(only: Sequence[str], kinds: Iterable[str], others: Collection[str] = ()) -> None:
    """Raises UserError where --only names no check of these kinds, and none of `others`."""
    known = {each.name for kind in kinds for each in checks(kind)} | {*others}
    for name in only:
        if name == REFERENCE and name not in known:
            raise UserError(
                f"--only {name}: it needs --reference FILE.py, which holds what a component is compared with"
            )
        if name not in known:
            raise UserError(f"--only: {unknown('check', name, known)}")
