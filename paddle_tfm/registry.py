"""Names → components: tables made from hook results that remember who provided each entry, and the building of one."""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import importlib.util
import inspect
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from paddle_tfm.errors import Problem, RecipeError, UserError, unknown
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.plugins import Plugins, Provider


@dataclass(frozen=True)
class Spec:
    """A component as a recipe writes it: ``name`` or ``{name: …, option: value, …}``."""

    name: str
    options: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object) -> Spec:
        """Raises ValueError with a sentence if `value` is neither form."""
        if isinstance(value, Spec):
            return value
        if isinstance(value, str):
            return cls(value)
        if isinstance(value, Mapping) and isinstance(value.get("name"), str):
            return cls(value["name"], {key: option for key, option in value.items() if key != "name"})
        raise ValueError(f"must be a name or {{name: …, options…}}, but is {value!r}")


@dataclass(frozen=True)
class Entry:
    """One registered component."""

    kind: str
    name: str
    target: type | str
    provider: Provider

    def load(self) -> type:
        """The class itself (this may import Paddle)."""
        if not isinstance(self.target, str):
            return self.target
        module, _, attribute = self.target.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
            if not isinstance(found, type):
                raise TypeError("it is no class")
            return found
        except Exception as error:  # the module is somebody's: anything may happen when it is imported
            raise UserError(
                f"{self.kind} '{self.name}' of plugin '{self.provider.plugin}' cannot be loaded from '{self.target}': "
                f"{type(error).__name__}: {error}"
            ) from error

    def summary(self) -> str:
        """The first paragraph of the class's docstring, read from its source without importing it."""
        if not isinstance(self.target, str):
            return _first_paragraph(inspect.getdoc(self.target))
        module, _, attribute = self.target.partition(":")
        try:
            found = importlib.util.find_spec(module)
            tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
        except (ImportError, AttributeError, OSError, SyntaxError, ValueError):
            return ""
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == attribute:
                return _first_paragraph(ast.get_docstring(node))
        return ""


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


@dataclass(frozen=True)
class Option:
    """A constructor's parameter that a recipe may set."""

    name: str
    annotation: object
    required: bool
    default: object


def component_kind(annotation: object) -> tuple[str, bool] | None:
    """(kind, is a list) when an option's annotation is a protocol type, or a list of one; None otherwise."""
    if isinstance(annotation, type) and isinstance(getattr(annotation, "kind", None), str):
        return annotation.kind, False
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, (list, tuple, typing.Sequence)) and arguments:
        inner = component_kind(arguments[0])
        return (inner[0], True) if inner else None
    for argument in arguments:  # Norm | None
        if inner := component_kind(argument):
            return inner
    return None


PARENT = "parent"  # a constructor's ``**parent`` goes to the constructor of its superclass


@functools.lru_cache(maxsize=512)
def parameters(cls: type) -> Mapping[str, Option]:
    """The parameters of a component's constructor, by name; cached, for a model asks for them at each of its sites.

    A constructor that ends with ``**parent`` passes these keywords on to ``super().__init__``. Its parameters are its own,
    and those of the next constructor in the method resolution order except `Component.fixed_options`, which it sets
    itself. A ``**`` parameter of another name adds nothing.
    """
    return types.MappingProxyType(_parameters(cls.__mro__))


def _parameters(classes: tuple[type, ...]) -> dict[str, Option]:
    """The parameters of the first constructor that `classes`, a method resolution order, define."""
    level = next(i for i, cls in enumerate(classes) if "__init__" in vars(cls))
    owner, constructor = classes[level], classes[level].__init__
    if constructor is object.__init__ or constructor.__module__.startswith("paddle."):
        return {}  # no component defines a constructor
    try:
        hints = typing.get_type_hints(constructor)
    except (NameError, TypeError):
        hints = {}
    options, inherits = {}, False
    for name, parameter in list(inspect.signature(constructor).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            inherits |= parameter.kind is parameter.VAR_KEYWORD and name == PARENT
            continue
        required = parameter.default is parameter.empty
        options[name] = Option(name, hints.get(name, typing.Any), required, None if required else parameter.default)
    if inherits:
        fixed = vars(owner).get("fixed_options", ())
        for name, option in _parameters(classes[level + 1 :]).items():
            if name not in fixed:
                options.setdefault(name, option)
    return options


class Registry:
    """All components that the installed plugins and those of `--plugin` registered."""

    def __init__(self, plugins: Plugins):
        self.plugins = plugins
        self.tables: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
        self.conflicts: dict[tuple[str, str], str] = {}
        for kind, hook in KINDS.items():
            for implementation in getattr(plugins.manager.hook, hook).get_hookimpls():
                self._collect(kind, hook, implementation)

    def _collect(self, kind: str, hook: str, implementation) -> None:
        name = implementation.plugin_name
        provider = self.plugins.providers.get(name, Provider(name, "registered in Python", ""))
        try:
            components = dict(implementation.function())
            for component, target in components.items():
                if not isinstance(component, str) or not isinstance(target, (str, type)):
                    raise TypeError(f"must return name → class or 'module:Class', but holds {component!r}: {target!r}")
        except Exception as error:
            self.plugins.failures[name] = f"{hook}: {type(error).__name__}: {error}"
            return
        table = self.tables[kind]
        for component, target in components.items():
            entry = Entry(kind, component, target, provider)
            if component in table:
                first, second = sorted([table[component].provider.plugin, name])
                self.conflicts[kind, component] = (
                    f"{kind} '{component}' is claimed by two plugins, '{first}' and '{second}'; remove or rename one"
                )
            table[component] = entry

    def __iter__(self) -> Iterator[Entry]:
        for kind in KINDS:
            yield from (self.tables[kind][name] for name in sorted(self.tables[kind]))

    def names(self, kind: str) -> list[str]:
        """The known names of a kind, sorted."""
        return sorted(self.tables[kind])

    def entry(self, kind: str, name: str) -> Entry:
        """The entry of that name.

        Raises:
            UserError: it is unknown (the nearest name is given, and what failed to load), or claimed twice.
        """
        if (kind, name) in self.conflicts:
            raise UserError(self.conflicts[kind, name])
        if name not in self.tables[kind]:
            text = unknown(kind, name, self.names(kind))
            for plugin, failure in self.plugins.failures.items():
                text += f"; plugin '{plugin}' failed to load ({failure})"
            raise UserError(text)
        return self.tables[kind][name]

    def options(self, kind: str, name: str) -> dict[str, Option]:
        """What a recipe may set on this component."""
        cls = self.entry(kind, name).load()
        return {key: option for key, option in parameters(cls).items() if key not in cls.givens - cls.settable}

    def parts(self, kind: str, value: object, path: str) -> Iterator[tuple[str, object, str]]:
        """(kind, spec, path) of the components that a component's options name, such as the encodings of a chain."""
        spec = Spec.parse(value)
        options = self.options(kind, spec.name)
        for key, setting in spec.options.items():
            if key in options and (nested := component_kind(options[key].annotation)) and setting is not None:
                kind_of_part, many = nested
                if many and isinstance(setting, (list, tuple)):
                    yield from ((kind_of_part, item, f"{path}.{key}[{i}]") for i, item in enumerate(setting))
                elif not many:
                    yield kind_of_part, setting, f"{path}.{key}"

    def check(self, kind: str, value: object, path: str) -> list[Problem]:
        """All that is wrong with a component spec, nothing built."""
        try:
            spec = Spec.parse(value)
            cls = self.entry(kind, spec.name).load()
        except (ValueError, UserError) as error:
            return [Problem(path, str(error))]
        if getattr(cls, "kind", None) != kind:
            return [
                Problem(path, f"'{spec.name}' is no {kind}: its class must subclass the one of paddle_tfm for {kind}s")
            ]
        options = self.options(kind, spec.name)
        problems = []
        for key, setting in spec.options.items():
            if key in options:
                problems += self._check_option(options[key], setting, f"{path}.{key}")
            elif key in cls.givens and key in parameters(cls):
                problems.append(Problem(f"{path}.{key}", f"'{spec.name}' gets '{key}' from the model; it is no option"))
            else:
                problems.append(Problem(f"{path}.{key}", _no_option(spec.name, key, options)))
        for part in self.parts(kind, spec, path):
            problems += self.check(*part)
        for key, option in options.items():
            if option.required and key not in spec.options and key not in cls.givens:
                problems.append(Problem(path, f"'{spec.name}' needs the option '{key}'"))
        return problems

    def _check_option(self, option: Option, setting: object, path: str) -> list[Problem]:
        if nested := component_kind(option.annotation):
            kind, many = nested
            wrong = many and not isinstance(setting, (list, tuple))
            if setting is None and type(None) not in typing.get_args(option.annotation):
                return [Problem(path, f"must be a {kind}, but is empty")]
            return (
                [Problem(path, f"must be a list of {kind}s, but is {setting!r}")]
                if wrong and setting is not None
                else []
            )
        try:
            _coerce(option, setting)
        except ValueError as error:
            return [Problem(path, str(error))]
        return []

    def build(self, kind: str, value: object, path: str | None = None, **given: object):
        """A component from its spec: options from the recipe, and of `given` only what its constructor declares.

        Raises:
            RecipeError: the spec is wrong, or the constructor refused with a ValueError.
        """
        path = path or kind
        if problems := self.check(kind, value, path):
            raise RecipeError("recipe", problems)
        spec = Spec.parse(value)
        cls = self.entry(kind, spec.name).load()
        arguments = {}
        for key, option in parameters(cls).items():
            if key in spec.options:
                arguments[key] = self._argument(option, spec.options[key], f"{path}.{key}", given)
            elif key in given:
                arguments[key] = given[key]
            elif option.required:
                raise RecipeError("recipe", [Problem(path, f"'{spec.name}' needs '{key}', which is not given here")])
        try:
            return cls(**arguments)
        except ValueError as error:
            raise RecipeError("recipe", [Problem(path, f"'{spec.name}' refuses: {error}")]) from error

    def _argument(self, option: Option, setting: object, path: str, given: Mapping[str, object]) -> object:
        nested = component_kind(option.annotation)
        if nested is None:
            return _coerce(option, setting)
        kind, many = nested
        if setting is None:
            return None
        if not many:
            return self.build(kind, setting, path, **given)
        return [self.build(kind, item, f"{path}[{i}]", **given) for i, item in enumerate(setting)]


def _no_option(component: str, name: str, known: Mapping[str, Option]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.55)
    hint = f"; did you mean '{near[0]}'? Its options" if near else "; its options"
    return f"'{component}' has no option '{name}'{hint}: {', '.join(sorted(known)) or 'none'}"


def _coerce(option: Option, setting: object) -> object:
    """The setting as the type that the constructor declares; ValueError with a sentence where it is not one."""
    if option.annotation is typing.Any:
        return setting
    try:
        adapter = TypeAdapter(option.annotation)
    except Exception:  # an annotation that pydantic does not know (a class of the plugin's own)
        return setting
    try:
        # As JSON: lists stand for tuples and sets too, and every other type is taken as written ("3" is no number).
        return adapter.validate_json(json.dumps(setting), strict=True)
    except TypeError:  # a value that no recipe can hold, given in Python
        return setting
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Input should be ")
        raise ValueError(f"must be {reason}, but is {setting!r}") from error
