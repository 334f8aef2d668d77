"""Names → components: tables made from hook results that remember who provided each entry; what a spec means."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping

from paddle_tfm.components import ComponentPlan, Entry, Spec
from paddle_tfm.errors import Problem, UserError, nearest, unknown
from paddle_tfm.hookspecs import KINDS, WrongOnPurpose
from paddle_tfm.language import _
from paddle_tfm.options import Option, coerce, component_kind, options_of, parameters
from paddle_tfm.other_names import name_here
from paddle_tfm.plugins import Plugins, Provider

# Which ordinary layers, written without paddle_tfm, the conformance kit can check.
AS_KINDS = ("attention", "norm", "position", "feed_forward", "encoder-decoder")


class Registry:
    """All components that the installed plugins and those of `--plugin` registered."""

    def __init__(self, plugins: Plugins):
        self.plugins = plugins
        self.tables: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
        self.conflicts: dict[tuple[str, str], str] = {}
        self._kernels: dict[str, dict[object, ComponentPlan]] = {}  # by device
        for kind, hook in KINDS.items():
            for implementation in getattr(plugins.manager.hook, hook).get_hookimpls():
                self._collect(kind, hook, implementation)

    def _collect(self, kind: str, hook: str, implementation) -> None:
        name = implementation.plugin_name
        provider = self.plugins.providers.get(name, Provider(name, "registered in Python", ""))
        try:
            entries = [_entry(kind, *item, provider) for item in dict(implementation.function()).items()]
        except Exception as error:
            self.plugins.failures[name] = f"{hook}: {type(error).__name__}: {error}"
            return
        for entry in entries:
            if earlier := self.tables[kind].get(entry.name):
                first, second = sorted([earlier.provider.plugin, name])
                self.conflicts[kind, entry.name] = (
                    f"{kind} '{entry.name}' is claimed by two plugins, '{first}' and '{second}'; remove or rename one"
                )
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Make a component known under its name, in place of one that had it."""
        self.tables[entry.kind][entry.name] = entry
        self._kernels.clear()

    def __iter__(self) -> Iterator[Entry]:
        for kind in KINDS:
            yield from (self.tables[kind][name] for name in sorted(self.tables[kind]))

    def names(self, kind: str) -> list[str]:
        """The known names of a kind, sorted, without what is wrong on purpose."""
        return sorted(name for name, entry in self.tables[kind].items() if not entry.wrong_on_purpose)

    def entry(self, kind: str, name: str) -> Entry:
        """The entry of that name.

        Raises:
            UserError: it is unknown (the nearest name is given, and what failed to load), or claimed twice.
        """
        if (kind, name) in self.conflicts:
            raise UserError(self.conflicts[kind, name])
        if name not in self.tables[kind]:
            text = unknown(kind, name, self.names(kind), unlisted=self.tables[kind])
            text += _("; where a plugin has it, install that plugin or pass --plugin FILE.py")
            for plugin, failure in self.plugins.failures.items():
                text += f"; plugin '{plugin}' failed to load ({failure})"
            raise UserError(text)
        return self.tables[kind][name]

    def options(self, kind: str, name: str) -> dict[str, Option]:
        """What a recipe may set on this component."""
        return options_of(self.entry(kind, name).load())

    def resolve(self, kind: str, value: object, path: str) -> ComponentPlan:
        """The component that a spec means: its class, its options as their types, and all that is wrong with it."""
        try:
            spec = Spec.parse(value)
        except ValueError as error:
            return ComponentPlan(kind, "", path, problems=(Problem(path, str(error)),))
        try:
            entry = self.entry(kind, spec.name)
            cls: type = entry.load()
        except UserError as error:
            return ComponentPlan(kind, spec.name, path, problems=(Problem(path, str(error)),))
        if getattr(cls, "kind", None) != kind:
            sentence = no_component(kind, spec.name, cls, entry.provider.source)
            return ComponentPlan(kind, spec.name, path, problems=(Problem(path, sentence),))
        values, problems = self._values(entry, spec, path)
        required = {key: parameter.required for key, parameter in parameters(cls).items()}
        return ComponentPlan(kind, spec.name, path, cls, entry.provider, values, required, tuple(problems))

    def kernels(self) -> dict[object, ComponentPlan]:
        """Class or op → the kernel that computes it on this device.

        Raises:
            UserError: one cannot be loaded, is none, or computes what another does.
        """
        from paddle_tfm import place  # imports Paddle

        device = "cpu" if place.on_cpu() else "gpu"
        if device not in self._kernels:
            kernels: dict[object, ComponentPlan] = {}
            for component in (self.resolve("kernel", name, f"kernel {name}") for name in self.names("kernel")):
                if component.problems or component.cls is None:
                    raise UserError(f"kernel '{component.name}': {component.problems[0].message}")
                if component.cls.device != device:
                    continue
                of = component.cls.of
                if of in kernels:
                    raise UserError(
                        f"kernels '{kernels[of].name}' and '{component.name}' both compute {of.__qualname__} on a "
                        f"{device.upper()}; remove the plugin of one"
                    )
                kernels[of] = component
            self._kernels[device] = kernels
        return self._kernels[device]

    def _values(self, entry: Entry, spec: Spec, path: str) -> tuple[dict[str, object], list[Problem]]:
        """The options that are right, as their types, and what is wrong with the others."""
        cls: type = entry.load()
        options, values, problems = options_of(cls), {}, []
        for key, setting in spec.options.items():
            where = f"{path}.{key}"
            if key in options:
                try:
                    values[key] = self._value(options[key], setting, where)
                except ValueError as error:
                    problems.append(Problem(where, str(error)))
            elif key in parameters(cls):
                problems.append(
                    Problem(
                        where,
                        _("'{name}' gets '{key}' from the model; it is no option").format(name=spec.name, key=key),
                    )
                )
            elif here := name_here(entry.kind, key):
                problems.append(
                    Problem(
                        where,
                        _("'{name}' has no option '{key}'; here that is {here}").format(
                            name=spec.name, key=key, here=here
                        ),
                    )
                )
            else:
                problems.append(Problem(where, _no_option(spec.name, key, options)))
        for value in values.values():
            for part in value if isinstance(value, list) else [value]:
                problems += part.problems if isinstance(part, ComponentPlan) else ()
        for key, option in options.items():
            if option.required and key not in spec.options and key not in getattr(cls, "givens", ()):
                problems.append(Problem(path, _("'{name}' needs the option '{key}'").format(name=spec.name, key=key)))
        return values, problems

    def _value(self, option: Option, setting: object, path: str) -> object:
        """A setting as the type that the constructor declares; ValueError with a sentence where it is not one."""
        nested = component_kind(option.annotation)
        if nested is None:
            return coerce(option, setting)
        kind, many = nested
        if setting is None:
            if type(None) not in typing.get_args(option.annotation):
                raise ValueError(_("must be a {kind}, but is empty").format(kind=kind))
            return None
        if not many:
            return self.resolve(kind, setting, path)
        if not isinstance(setting, (list, tuple)):
            raise ValueError(_("must be a list of {kind}s, but is {setting!r}").format(kind=kind, setting=setting))
        return [self.resolve(kind, item, f"{path}[{i}]") for i, item in enumerate(setting)]

    def build(self, kind: str, value: object, path: str | None = None, **givens: object) -> typing.Any:
        """A component outside of a recipe: resolved and built in one go.

        Raises:
            RecipeError: the spec is wrong, or the constructor refused with a ValueError.
        """
        return self.resolve(kind, value, path or kind).build(**givens)


def _entry(kind: str, name: object, target: object, provider: Provider) -> Entry:
    wrong_on_purpose = isinstance(target, WrongOnPurpose)
    target = target.target if isinstance(target, WrongOnPurpose) else target
    if not isinstance(name, str) or not isinstance(target, (str, type)):
        raise TypeError(f"must return name → class or 'module:Class', but holds {name!r}: {target!r}")
    return Entry(kind, name, target, provider, wrong_on_purpose)


def _no_option(component: str, name: str, known: Mapping[str, Option]) -> str:
    hint = nearest(name, list(known))
    text = _("'{component}' has no option '{name}'{hint} Its options: {options}")
    options = ", ".join(sorted(known)) or _("none")
    return text.format(component=component, name=name, hint=hint or _("."), options=options)


def no_component(kind: str, name: str, cls: object, source: str) -> str:
    """That what is registered as a component of a kind is none, and what else can be done with it. `source`: of its
    plugin, where that is a file."""
    protocol, called = kind.title().replace("_", ""), getattr(cls, "__name__", repr(cls))
    sentence = f"'{name}' is no {kind}: {called} must subclass paddle_tfm.protocols.{protocol}"
    if kind not in AS_KINDS:
        return sentence
    where = f"{source if source.endswith('.py') else 'FILE.py'}:{called}"
    return f"{sentence}; `paddle-tfm plugin check --as {kind} {where}` checks an ordinary layer as it is"
