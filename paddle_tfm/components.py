"""A component before it exists: as a recipe writes it (`Spec`), as a plugin registers it (`Entry`), and with its class
and options resolved (`ComponentPlan`)."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddle_tfm.component_source import docstring
from paddle_tfm.errors import Problem, RecipeError, UserError
from paddle_tfm.language import _
from paddle_tfm.plugin_errors import of_plugin, summary
from paddle_tfm.plugins import Provider


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


def imported(place: str) -> Any:
    """What stands at `package.module:name`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Entry:
    """One registered component. `wrong_on_purpose`: it is listed, completed and checked only when asked for."""

    kind: str
    name: str
    target: type | str
    provider: Provider
    wrong_on_purpose: bool = False

    def load(self) -> type[Any]:
        """The class itself (this may import Paddle).

        Raises:
            UserError: its module cannot be imported, or holds no such class.
        """
        if not isinstance(self.target, str):
            return self.target
        try:
            cls = imported(self.target)
            if not isinstance(cls, type):
                raise TypeError("it is no class")
            return cls
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the module is somebody's: anything may happen when it is imported
            raise UserError(
                f"{self.kind} '{self.name}' of plugin '{self.provider.plugin}' cannot be loaded from '{self.target}': "
                f"{type(error).__name__}: {error}"
            ) from error

    def docstring(self) -> str:
        """The class's, read from its source without importing it."""
        return docstring(self.target)

    def summary(self) -> str:
        """Its first paragraph, on one line."""
        return " ".join(self.docstring().split("\n\n")[0].split())


@dataclass(frozen=True)
class ComponentPlan:
    """A component that a recipe names, with all that was worked out about it: its class, and its options as the types
    that the constructor declares. `Registry.resolve` makes it; nothing of it is checked again.

    Args:
        path: where the recipe says so, dotted. cls: None if there is none; `problems` say why.
        options: a component among them is a ComponentPlan, a list of components a list of them.
        parameters: the constructor's, each with whether it must be given.
        problems: all that is wrong, those of the components in its options too.
    """

    kind: str
    name: str
    path: str
    cls: type[Any] | None = None
    provider: Provider | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    parameters: Mapping[str, bool] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def build(self, **givens: object) -> Any:
        """The component: its options, and of `givens` what its constructor declares.

        Raises:
            RecipeError: there are problems, a given is missing, the constructor refused with a ValueError, or it cannot
                compute with its options.
        """
        if self.problems or self.cls is None:
            raise RecipeError("recipe", self.problems)
        if missing := self.missing(givens):
            sentence = _("'{name}' needs '{missing}', which is not given here").format(
                name=self.name, missing=missing[0]
            )
            raise RecipeError("recipe", [Problem(self.path, sentence)])
        arguments = {key: givens[key] for key in self.parameters if key in givens}
        arguments |= {key: _constructed(value, givens) for key, value in self.options.items()}
        try:
            return self.cls(**arguments)
        except ValueError as error:
            raise RecipeError(
                "recipe", [Problem(self.path, _("'{name}' refuses: {why}").format(name=self.name, why=error))]
            ) from error
        except Exception as error:
            if (plugin_error := of_plugin(error)) is not None:
                raise RecipeError("recipe", [Problem(self.path, str(plugin_error))]) from error
            if not isinstance(error, (ArithmeticError, AssertionError)):  # AssertionErrors are Paddle's
                raise
            sentence = _("'{name}' cannot compute with these options: {error}").format(
                name=self.name, error=summary(error)
            )
            raise RecipeError("recipe", [Problem(self.path, sentence)]) from error

    def missing(self, givens: Mapping[str, object]) -> list[str]:
        """Parameters that the constructor needs and that are neither options nor in `givens`."""
        return [
            key
            for key, required in self.parameters.items()
            if required and key not in self.options and key not in givens
        ]

    def walk(self) -> Iterator[ComponentPlan]:
        """This component, and all those in its options, such as the encodings of a chain."""
        yield self
        for value in self.options.values():
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ComponentPlan):
                    yield from part.walk()


def _constructed(value: object, givens: Mapping[str, object]) -> object:
    if isinstance(value, ComponentPlan):
        return value.build(**givens)
    if isinstance(value, list) and any(isinstance(item, ComponentPlan) for item in value):
        return [item.build(**givens) for item in value]
    # A copy: what one instance does to its list is not seen by the next one.
    return copy.deepcopy(value) if isinstance(value, (list, dict, set)) else value
