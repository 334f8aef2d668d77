"""How `paddle-tfm plugin check` examines: what is named is found, given to the conformance kit, and reported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paddle_tfm.cli.plugin.report import ReportPrinter
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.language import _
from paddle_tfm.registry import Registry
from paddle_tfm.testing import Outcome, Report, checks, examine, lookup
from paddle_tfm.testing.reference.compared import Reference

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
    brief: bool
    as_json: bool

    def require_sound(self) -> None:
        """Raises UserError where an option belongs to another use."""
        beside = _("without --as")
        if self.as_kind is not None:
            beside = _("beside --as {kind}").format(kind=self.as_kind)
        of_layers = {"--mask": (self.mask, "attention"), "--pad-id": (self.pad_id, "encoder-decoder")}
        for option, (value, its_kind) in of_layers.items():
            if value is not None and self.as_kind != its_kind:
                text = _("{option} belongs to --as {its_kind}, and has no effect {beside}")
                raise UserError(text.format(option=option, its_kind=its_kind, beside=beside))
        if self.reference is not None and self.as_kind == "encoder-decoder":
            text = _("--reference is for single layers, and has no effect {beside}")
            raise UserError(text.format(beside=beside))
        if self.as_kind is not None and self.target is None:
            text = _("--as {as_kind}: name a class, as in --as {as_kind} my_transformer.py:MyClass")
            raise UserError(text.format(as_kind=self.as_kind))


def examine_ordinary(wanted: Request, target: str, as_kind: str, registry: Registry) -> None:
    """Examine an ordinary layer, or a whole model.

    Raises:
        UserError: there is no such class, or an option does not fit.
        click.exceptions.Exit: a check failed.
    """
    _refuse_unknown(wanted.only, [as_kind], {REFERENCE} if wanted.reference is not None else set())
    printer, only = ReportPrinter(wanted.brief, wanted.as_json), frozenset(wanted.only)

    def beside(kind: str, name: str, registry: Registry) -> Callable[[], Outcome]:
        return Reference(wanted.reference or "", kind, name, {}, registry).outcome

    with printer.component(target):
        cls, pad_id = lookup.ordinary_class(target, as_kind), wanted.pad_id or 0
        report = lookup.examine_class(
            as_kind,
            cls,
            wanted.options,
            wanted.mask,
            pad_id,
            registry,
            only,
            printer.outcome,
            None if wanted.reference is None else beside,
        )
        printer.end(report)
    printer.finish()


def examine_components(wanted: Request, registry: Registry) -> None:
    """Examine every component that is named, or all.

    Raises:
        UserError: nothing of that name is to be checked, or an option does not fit.
        click.exceptions.Exit: a check failed, or one of several components could not be checked.
    """
    target = wanted.target
    components = lookup.everything(registry) if target is None else lookup.find(target, registry)
    against = _reference(wanted, components, registry)
    printer = ReportPrinter(wanted.brief or target is None or target in KINDS, wanted.as_json)
    for kind, name in components:
        with printer.component(f"{kind} {name}"):
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


def _reference(wanted: Request, components: Sequence[tuple[str, str]], registry: Registry) -> Reference | None:
    """What --reference names, tried before any check: what is wrong with it is found in seconds, not after minutes."""
    text, named = wanted.reference, wanted.target or "all"
    if text is not None and len(components) > 1:
        one = f"{named}:CLASS" if named.endswith(".py") else ":".join(components[0])
        sentence = _("--reference is of one component, but {named} is {number}; name one, as in {one}")
        raise UserError(sentence.format(named=named, number=len(components), one=one))
    _refuse_unknown(wanted.only, {kind for kind, _name in components}, {REFERENCE} if text is not None else set())
    return Reference(text, *components[0], wanted.options, registry) if text is not None else None


def _refuse_unknown(only: Sequence[str], kinds: Iterable[str], others: Collection[str] = ()) -> None:
    """Raises UserError where --only names no check of these kinds, and none of `others`."""
    known = {each.name for kind in kinds for each in checks(kind)} | {*others}
    for name in only:
        if name == REFERENCE and name not in known:
            text = _("--only {name}: it needs --reference FILE.py, which holds what a component is compared with")
            raise UserError(text.format(name=name))
        if name not in known:
            raise UserError(f"--only: {unknown('check', name, known)}")
