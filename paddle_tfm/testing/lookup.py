"""What a user names to be checked: a component, a class in a package or a file, an ordinary layer."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from paddle_tfm.errors import UserError, nearest, unknown
from paddle_tfm.hookspecs import EXPORT_RULES, KINDS, LISTENER, PROJECT
from paddle_tfm.language import _
from paddle_tfm.plugins import listeners, load_file
from paddle_tfm.registry import AS_KINDS, Registry, no_component
from paddle_tfm.testing import Outcome, Report, checks, examine, installed, run_checks, with_class
from paddle_tfm.testing.module_file import load

OnOutcome = Callable[[Outcome], None]


def find(target: str, registry: Registry) -> list[tuple[str, str]]:
    """(kind, name) of what `target` names: `name`, `kind:name`, `kind` (all of it), `package.module:Class`, or a file
    `FILE.py` (all that it registers, or else its component classes; and the file itself, if it listens) or
    `FILE.py:Class`. A listener is named by its plugin.

    Raises:
        UserError: nothing of that name; the nearest is given.
    """
    module_name, _colon, attribute = target.rpartition(":") if ":" in target else (target, "", "")
    if attribute and module_name in KINDS:
        registry.entry(module_name, attribute)
        return [(module_name, attribute)]
    if attribute and module_name == LISTENER:
        return [(LISTENER, attribute)]
    if module_name.endswith(".py"):
        return _in_file(Path(module_name), attribute, registry)
    if attribute:
        return [_component(_attribute(_imported(module_name), attribute, module_name), registry)]
    if target in KINDS:
        return [(kind, name) for kind, name in everything(registry) if kind == target]
    entries = [(entry.kind, entry.name) for entry in registry if entry.name == target]
    entries += [(LISTENER, name) for name in listeners(registry.plugins) if name == target]
    if not entries:
        names = sorted(
            {entry.name for entry in registry if checks(entry.kind)} | {*KINDS, *listeners(registry.plugins)}
        )
        text = _(
            "unknown component '{target}'{hint} `paddle-tfm ls components` lists those that are installed. A "
            "class: package.module:Class, or FILE.py:Class"
        )
        raise UserError(text.format(target=target, hint=nearest(target, names) or "."))
    return entries


def everything(registry: Registry) -> list[tuple[str, str]]:
    """(kind, name) of all installed components that there are checks for, and of listeners, but for those that are
    wrong on purpose."""
    components = [(entry.kind, entry.name) for entry in registry if checks(entry.kind) and not entry.wrong_on_purpose]
    return [*components, *((LISTENER, name) for name in listeners(registry.plugins))]


def _in_file(path: Path, attribute: str, registry: Registry) -> list[tuple[str, str]]:
    plugins = registry.plugins
    registered = [(entry.kind, entry.name) for entry in registry if entry.provider.source == str(path)]
    registered += [(LISTENER, name) for name in listeners(plugins) if plugins.providers[name].source == str(path)]
    if registered and not attribute:
        return registered
    module = load(path)
    if attribute:
        return [_component(_attribute(module, attribute, str(path)), registry)]
    _require_components(path, module)
    registered_classes = [cls for _kind, _name, cls in _registered(module) if isinstance(cls, type)]
    classes = [cls for cls in _classes(module) if getattr(cls, "kind", None) in KINDS]
    # What a registered class is derived from is there to be shared, and may lack a method.
    bases = {base for cls in registered_classes for base in cls.__mro__[1:]} - set(registered_classes)
    entries = [_component(cls, registry) for cls in classes if cls not in bases]
    if any(name.startswith("on_") for name in _hooks(module)):
        load_file(plugins, path)
        entries += [(LISTENER, name) for name in listeners(plugins) if plugins.providers[name].source == str(path)]
    if not entries and EXPORT_RULES in _hooks(module):
        text = _("{path} has export rules alone, which are proved by `paddle-tfm export RUN --plugin {path}`")
        raise UserError(text.format(path=path))
    if not entries:
        text = _(
            "{path} registers nothing, and holds no component class; for an ordinary layer: --as {as_kinds} "
            "{path}:Class (also {others})"
        )
        raise UserError(text.format(path=path, as_kinds=AS_KINDS[0], others=", ".join(AS_KINDS[1:])))
    return entries


def _require_components(path: Path, module) -> None:
    """Raises UserError where what a module registers of a kind is none of it."""
    for kind, registered in _tables(module).items():
        if not isinstance(registered, Mapping):
            text = _("{path}: `{kinds}` must return {{name: class}}, but returns {registered!r:.80}")
            raise UserError(text.format(path=path, kinds=KINDS[kind], registered=registered))
    for kind, name, cls in _registered(module):
        if isinstance(cls, type) and getattr(cls, "kind", None) != kind:
            raise UserError(f"{path}: {no_component(kind, name, cls, str(path))}")


def _registered(module) -> Iterator[tuple[str, str, object]]:
    """(kind, name, class or text) of what the hooks of a module register."""
    for kind, table in _tables(module).items():
        if isinstance(table, Mapping):
            yield from ((kind, name, getattr(item, "target", item)) for name, item in table.items())


def _names(cls: type) -> Iterator[tuple[str, str]]:
    """(kind, name) under which the hooks of its module register a class."""
    return ((kind, name) for kind, name, each in _registered(sys.modules[cls.__module__]) if each is cls)


def _tables(module) -> dict[str, object]:
    """Kind → what the hook of a module returns for it."""
    hooks, registered = _hooks(module), {}
    for kind, name in KINDS.items():
        if name in hooks:
            with contextlib.suppress(Exception):  # the plugin's own code; what it raises is said when it is loaded
                registered[kind] = hooks[name]()
    return registered


def _hooks(module) -> dict[str, Callable]:
    """The functions marked with `@hookimpl`."""
    functions = {name: value for name, value in list(vars(module).items()) if inspect.isfunction(value)}
    return {name: value for name, value in functions.items() if hasattr(value, f"{PROJECT}_impl")}


def _imported(name: str):
    try:
        return importlib.import_module(name)
    except Exception as error:
        text = _("{name} cannot be imported: {kind}: {error}")
        raise UserError(text.format(name=name, kind=type(error).__name__, error=error)) from error


def _classes(module) -> Iterator[type]:
    return (value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__)


def _attribute(module, name: str, place: str) -> type:
    value = getattr(module, name, None)
    if not isinstance(value, type):
        raise UserError(f"{place}: {unknown('class', name, [cls.__name__ for cls in _classes(module)])}")
    return value


def _component(cls: type, registry: Registry) -> tuple[str, str]:
    if getattr(cls, "kind", None) not in KINDS:
        for kind, name in _names(cls):
            raise UserError(no_component(kind, name, cls, str(getattr(sys.modules[cls.__module__], "__file__", ""))))
        text = _(
            "{name} is no component: it subclasses none of paddle_tfm.protocols. An ordinary layer is checked with "
            "--as {others} or {as_kinds}"
        )
        raise UserError(text.format(name=cls.__name__, others=", ".join(AS_KINDS[:-1]), as_kinds=AS_KINDS[-1]))
    for entry in registry:
        if not isinstance(entry.target, str) and entry.target is cls:
            return entry.kind, entry.name
    return with_class(registry, cls)


def not_registered(kind: str, name: str, registry: Registry) -> str:
    """Why no recipe can name a component that was checked, and what is to be changed; "" if one can."""
    if kind == LISTENER:
        return ""
    entry = registry.entry(kind, name)
    if entry.provider.plugin in registry.plugins.providers or isinstance(entry.target, str):
        return ""
    hook = KINDS[kind]
    for its_kind, its_name in _names(entry.target):
        taken = registry.tables[its_kind].get(its_name)
        if taken is None or taken.target is entry.target:
            return ""
        return (
            f"the name '{its_name}' is taken: plugin '{taken.provider.plugin}' registers a {its_kind} of that name, so "
            f"no recipe can name {name}; give it another one in `{hook}`"
        )
    return (
        f"{name} is not registered, so no recipe can name it: add a function `{hook}` marked with `@hookimpl` that "
        f"returns {{'{name.lower()}': {name}}}"
    )


# ----------------------------------------------------------------------------------------------------- ordinary layers


def examine_class(
    as_kind: str,
    cls: type,
    options: Mapping[str, object],
    mask: str | None = None,
    pad_id: int = 0,
    registry: Registry | None = None,
    only: frozenset[str] = frozenset(),
    on_outcome: OnOutcome = lambda outcome: None,
    beside: Callable[[str, str, Registry], Callable[[], Outcome]] | None = None,
) -> Report:
    """Check the class of an ordinary layer as it is.

    Args:
        beside: makes, of a component's kind and name, a last check: with a reference. as_kind: one of AS_KINDS. mask:
            what its mask means, allowed | hidden | additive;
            None: worked out. pad_id: what pads a source (encoder-decoder).
    Raises:
        UserError: it cannot be built or called.
    """
    from paddle_tfm.testing.adapters import layers
    from paddle_tfm.testing.adapters.attention import attention
    from paddle_tfm.testing.adapters.whole_model import WholeModel

    if as_kind == "encoder-decoder":
        whole = WholeModel(cls, options, pad_id)
        return Report(as_kind, cls.__name__, run_checks(whole, only, on_outcome), whole.notes)
    if as_kind == "attention":
        component, call = attention(cls, options, mask)
    else:
        component, call = getattr(layers, as_kind)(cls, options), None
    registry = registry or installed()
    kind, name = with_class(registry, component)
    reference = beside(kind, name, registry) if beside is not None else None
    report = examine(kind, name, registry=registry, only=only, on_outcome=on_outcome)
    outcomes = [*report.outcomes]
    if reference is not None:
        outcomes.append(reference())
        on_outcome(outcomes[-1])
    if call is None:
        return Report(as_kind, cls.__name__, outcomes, report.notes)
    return Report(as_kind, cls.__name__, outcomes, (*report.notes, call.description()), call.disobeys)


def ordinary_class(target: str, as_kind: str) -> type:
    """The class that `FILE.py:Class` or `package.module:Class` names; of a file with one layer `FILE.py` is enough.

    Raises:
        UserError: there is no such class.
    """
    place, _colon, name = target.rpartition(":") if ":" in target else (target, "", "")
    module = load(Path(place)) if place.endswith(".py") else _imported(place)
    if name:
        return _attribute(module, name, place)
    from paddle import nn

    classes = [cls for cls in _classes(module) if issubclass(cls, nn.Layer) and not inspect.isabstract(cls)]
    if len(classes) != 1:
        known = ", ".join(cls.__name__ for cls in classes) or "none"
        text = _("{place} holds {number} layers ({known}); say which: --as {as_kind} {place}:Class")
        raise UserError(text.format(place=place, number=len(classes), known=known, as_kind=as_kind))
    return classes[0]
