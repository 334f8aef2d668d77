"""What a recipe may set of a component: its constructor's parameters, and a setting as the type that one declares."""

from __future__ import annotations

import functools
import inspect
import json
import math
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

from paddle_tfm.language import _

LARGEST = 2**31 - 1  # of whole numbers: no seed is above it, and no size of Paddle's
PARENT = "parent"  # a constructor's ``**parent`` goes to the constructor of its superclass


@dataclass(frozen=True)
class Option:
    """A constructor's parameter that a recipe may set."""

    name: str
    annotation: typing.Any
    required: bool
    default: object


def component_kind(annotation: object) -> tuple[str, bool] | None:
    """(kind, is a list) when an option's annotation is a protocol type, or a list of one; None otherwise."""
    kind = getattr(annotation, "kind", None)
    if isinstance(annotation, type) and isinstance(kind, str):
        return kind, False
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, (list, tuple, typing.Sequence)) and arguments:
        inner = component_kind(arguments[0])
        return (inner[0], True) if inner else None
    for argument in arguments:  # Norm | None
        if inner := component_kind(argument):
            return inner
    return None


@functools.lru_cache(maxsize=512)
def parameters(cls: type) -> Mapping[str, Option]:
    """The parameters of a component's constructor, by name; cached, for a model asks for them at each of its sites.

    A constructor that ends with ``**parent`` passes these keywords on to ``super().__init__``. Its parameters are its
    own, and those of the next constructor in the method resolution order except `Component.fixed_options`, which it
    sets itself. A ``**`` parameter of another name adds nothing.
    """
    return types.MappingProxyType(_parameters(cls.__mro__))


def _parameters(classes: tuple[type, ...]) -> dict[str, Option]:
    """The parameters of the first constructor that `classes`, a method resolution order, define."""
    level = next(i for i, cls in enumerate(classes) if "__init__" in vars(cls))
    owner = classes[level]
    constructor = vars(owner)["__init__"]
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


def options_of(cls: type) -> dict[str, Option]:
    """What a recipe may set of a class: the constructor's parameters, but for those that the engine fills."""
    filled: frozenset[str] = getattr(cls, "givens", frozenset()) - getattr(cls, "settable", frozenset())
    return {key: option for key, option in parameters(cls).items() if key not in filled}


# what pydantic says that a value should be -> in our words
TYPES = {
    "a valid string": "text",
    "a valid array": "a list",
    "a valid integer": "a valid integer",
    "a valid number": "a valid number",
    "a valid boolean": "a valid boolean",
}


def coerce(option: Option, setting: object) -> object:
    """The setting as the type that the constructor declares; ValueError with a sentence where it is not one."""
    for number in _numbers(setting):
        if not math.isfinite(number):
            raise ValueError(_("must be a finite number, but is {setting!r}").format(setting=setting))
    value = _typed(option, setting)
    for number in _numbers(value):
        if isinstance(number, int) and abs(number) > LARGEST:
            bound = _("at most {most}") if number > 0 else _("at least -{most}")
            text = _("must be {bound}, as all whole numbers, but is {setting!r}")
            raise ValueError(text.format(bound=bound.format(most=f"{LARGEST:,}"), setting=setting))
    return value


def _typed(option: Option, setting: object) -> object:
    from pydantic import TypeAdapter, ValidationError  # here: completion reads no setting, and answers at once

    if option.annotation is typing.Any:
        return setting
    try:
        adapter: TypeAdapter = TypeAdapter(option.annotation)
    except Exception:  # an annotation that pydantic does not know (a class of the plugin's own)
        return setting
    try:
        # As JSON: lists stand for tuples and sets too, and every other type is taken as written ("3" is no number).
        return adapter.validate_json(json.dumps(setting), strict=True)
    except TypeError:  # a value that no recipe can hold, given in Python
        return setting
    except ValidationError as error:
        for each in error.errors():
            if each["type"] == "unexpected_keyword_argument":
                parts = [part for part in typing.get_args(option.annotation) if is_dataclass(part)]
                known = ", ".join(field.name for part in parts for field in fields(part))
                raise ValueError(f"has the unknown key '{each['loc'][-1]}'; known: {known}") from error
        words = (each["msg"].removeprefix("Input should be ") for each in error.errors())  # of a union
        reasons = dict.fromkeys(_(TYPES.get(each, each)) for each in words)
        if type(None) in typing.get_args(option.annotation):
            reasons["null"] = None
        text = _("must be {allowed}, but is {setting!r}")
        raise ValueError(text.format(allowed=_(" or ").join(reasons), setting=setting)) from error


def _numbers(setting: object) -> Iterator[int | float]:
    """All numbers of a setting, in its lists and mappings too."""
    if isinstance(setting, (int, float)):
        yield setting
    inside = setting.values() if isinstance(setting, Mapping) else setting
    for item in inside if isinstance(inside, Iterable) and not isinstance(inside, str) else ():
        yield from _numbers(item)
