"""Which function says how CTranslate2 holds a component: a rule a class, from plugins."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paddle_tfm.component_source import module_file
from paddle_tfm.components import imported
from paddle_tfm.errors import UserError
from paddle_tfm.hookspecs import EXPORT_RULES
from paddle_tfm.plugin_errors import of_plugin, summary
from paddle_tfm.protocols import Refusal
from paddle_tfm.protocols.component import Component
from paddle_tfm.registry import Registry


class ExportRefused(UserError):
    """CTranslate2 cannot hold this model, or computes something else with it; the message says why."""


class Answer(dict[str, Any]):
    """What a rule returns. title: of its component."""

    def __init__(self, items: Mapping[str, Any], title: str):
        super().__init__(items)
        self.title = title

    def __missing__(self, key: str) -> Any:
        raise ExportRefused(f"{self.title} has a rule that must give '{key}', but gives {', '.join(self) or 'nothing'}")


@dataclass(frozen=True)
class Rule:
    """What a plugin registered: a class and a function, or where they are, `package.module:name`."""

    of: type | str
    target: Callable[..., Mapping[str, Any]] | str
    plugin: str

    def is_of(self, cls: type) -> bool:
        """Whether it is the rule of exactly this class."""
        return is_at(cls, self.of)

    def load(self) -> Callable[..., Mapping[str, Any]]:
        """The function.

        Raises:
            UserError: its module cannot be imported, or holds no such function.
        """
        if not isinstance(self.target, str):
            return self.target
        try:
            return imported(self.target)
        except Exception as error:
            raise UserError(
                f"plugin '{self.plugin}': the rule '{self.target}' cannot be loaded: {summary(error)}"
            ) from error


def is_at(cls: type, place: type | str) -> bool:
    """Whether a plugin means this class: it, or `package.module:Class`, which is imported where the class is in use."""
    if isinstance(place, type):
        return place is cls
    module, _, name = place.partition(":")
    return getattr(sys.modules.get(module), name, None) is cls


class Rules:
    """The rules of all plugins that a registry knows."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._rules: list[Rule] = []
        for implementation in getattr(registry.plugins.manager.hook, EXPORT_RULES).get_hookimpls():
            name = implementation.plugin_name
            try:
                self._rules += [_rule(*item, name) for item in dict(implementation.function()).items()]
            except Exception as error:
                registry.plugins.failures[name] = f"{EXPORT_RULES}: {summary(error)}"

    def held(self, component: Component) -> Answer:
        """What the rule of a component's class returns. It gets the component, and `held`, which is this method, if it
        names it: the rule of a component that holds others asks for theirs.

        Raises:
            ExportRefused: there is no rule, or it refuses.
            UserError: there are two; it cannot be loaded.
        """
        rule = self._rule(component)
        arguments = {"held": self.held} if "held" in inspect.signature(rule).parameters else {}
        try:
            answer = rule(component, **arguments)
        except Refusal as refusal:
            raise self.refused(component, str(refusal)) from None
        except UserError:  # of a component that this one holds
            raise
        except Exception as error:
            if (plugin_error := of_plugin(error)) is None:
                raise
            raise self.refused(component, f"has a rule that fails: {plugin_error}") from error
        if not isinstance(answer, Mapping):
            raise self.refused(component, f"has a rule that must return a dictionary, but returns {answer!r:.80}")
        return Answer(answer, self._title(component))

    def identity(self) -> str:
        """A hash of which rules there are, and of the code of the modules that hold them."""
        rules = sorted((_place(rule.of), _place(rule.target)) for rule in self._rules)
        total = hashlib.sha256(repr(rules).encode())
        for module in sorted({target.partition(":")[0] for _, target in rules}):
            if (file := module_file(module)) is not None:
                total.update(file.read_bytes())
        return total.hexdigest()

    def refused(self, component: Component, reason: str) -> ExportRefused:
        """That a component is not held: its kind and name, and the reason."""
        return ExportRefused(f"{self._title(component)} {reason}")

    def name(self, component: Component) -> str:
        """What recipes call its class, or the class' own name where they cannot."""
        cls = type(component)
        names = (entry.name for entry in self._registry.tables[component.kind].values() if is_at(cls, entry.target))
        return next(names, cls.__name__)

    def _title(self, component: Component) -> str:
        return f"{component.kind.replace('_', '-')} '{self.name(component)}'"

    def _rule(self, component: Component) -> Callable[..., Mapping[str, Any]]:
        rules = [rule for rule in self._rules if rule.is_of(type(component))]
        if len(rules) > 1:
            plugins = " and ".join(sorted(f"'{rule.plugin}'" for rule in rules))
            raise UserError(f"{self._title(component)} has export rules of {plugins}; remove all but one")
        if rules:
            return rules[0].load()
        reason = "has no export rule; if CTranslate2 can hold it, write one (docs/export.md, A component of your own)"
        for name, failure in self._registry.plugins.failures.items():
            reason += f"; plugin '{name}' failed to load ({failure})"
        raise self.refused(component, reason)


def _place(of: Any) -> str:
    """`package.module:name` of a class or function, or of where it is."""
    return of if isinstance(of, str) else f"{of.__module__}:{of.__qualname__}"


def _rule(cls: object, target: object, plugin: str) -> Rule:
    if not isinstance(cls, (type, str)) or not (isinstance(target, str) or callable(target)):
        raise TypeError(f"must return class → function, or 'module:name' of either, but holds {cls!r}: {target!r}")
    return Rule(cls, target, plugin)
