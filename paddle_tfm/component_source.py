"""What a component's source says, read without importing it: docstring, options with defaults and ranges, givens,
expected failures. Lists, `show` and completion answer with it at once, where importing Paddle takes two seconds.

It follows classes through imports and `**parent` constructors, as `options.parameters` does on classes; tests hold the
two together. What cannot be read (a class made by a function, a value computed in code) is left out.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paddle_tfm.class_source import ClassSource, evaluate, find_definition, lineage, place, value_or_none

MAX_CHOICES = 24  # that are written out


@dataclass(frozen=True)
class OptionSource:
    """One parameter of a constructor, as its source has it.

    Args:
        annotation: as written; "" if there is none. default: as written; None if it is required. rule: what its value
            must be, in words; "" if nothing checks it with `paddle_tfm.validators`. choices: if only those are allowed,
            or those beside a number.
    """

    name: str
    annotation: str = ""
    default: str | None = None
    rule: str = ""
    choices: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is None


class ComponentSource:
    """A component's class with its superclasses, in the order in which Python would look through them."""

    def __init__(self, target: type | str):
        self.lineage = lineage(*place(target))

    def __bool__(self) -> bool:
        return bool(self.lineage)

    @property
    def docstring(self) -> str:
        """The class's own."""
        return self.lineage[0].docstring if self.lineage else ""

    @property
    def protocol(self) -> ClassSource | None:
        """The class of `paddle_tfm.protocols` that names its kind."""
        return next((each for each in self.lineage if each.own_value("kind") is not None), None)

    def value(self, name: str, otherwise: Any) -> Any:
        """A class attribute: a literal, or a set, mapping or text made of literals."""
        for each in self.lineage:
            if (node := each.own_value(name)) is not None:
                try:
                    return evaluate(node, each.module)
                except ValueError:
                    return otherwise
        return otherwise

    def parameters(self) -> dict[str, OptionSource]:
        """All of the constructor, givens too, by name."""
        return _parameters(self.lineage)

    def options(self) -> dict[str, OptionSource]:
        """What a recipe may set."""
        filled = frozenset(self.value("givens", ())) - frozenset(self.value("settable", ()))
        return {name: option for name, option in self.parameters().items() if name not in filled}

    def filled(self) -> list[str]:
        """What the engine fills in: the givens that the constructor takes."""
        givens = frozenset(self.value("givens", ()))
        return [name for name in self.parameters() if name in givens]


def kind_of_annotation(annotation: str, target: type | str) -> str:
    """The kind of component that an option of this class takes, for instance of `list[PositionalEncoding]`; "" for a
    plain value."""
    module, _ = place(target)
    try:
        names = {node.id for node in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(node, ast.Name)}
    except SyntaxError:
        return ""
    for name in sorted(names):
        for each in lineage(module, name):
            if (kind := each.own_value("kind")) is not None:
                return str(evaluate(kind, each.module))
    return ""


# ------------------------------------------------------------------------------------------------------------- options


def _parameters(classes: Sequence[ClassSource]) -> dict[str, OptionSource]:
    """Of the first constructor among these classes, and of the next one if it ends with `**parent`."""
    for i, each in enumerate(classes):
        function = each.constructor()
        if function is None:
            continue
        own = _own_parameters(function, each.module)
        if function.args.kwarg is not None and function.args.kwarg.arg == "parent":
            value = each.own_value("fixed_options")
            fixed = () if value is None else evaluate(value, each.module)
            own |= {
                name: option
                for name, option in _parameters(classes[i + 1 :]).items()
                if name not in fixed and name not in own
            }
        return own
    return {}


def _own_parameters(function: ast.FunctionDef, module: str) -> dict[str, OptionSource]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    defaults: list[ast.expr | None] = [None] * missing
    defaults += [*arguments.defaults, *arguments.kw_defaults]
    rules = _rules(function, module)
    options = {}
    for argument, default in list(zip([*positional, *arguments.kwonlyargs], defaults))[1:]:  # not `self`
        written = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        value = None if default is None else _as_written(default, module)
        rule, choices = rules.get(argument.arg, ("", ()))
        choices = choices or _literal_choices(argument.annotation)
        options[argument.arg] = OptionSource(argument.arg, written, value, rule or _one_of(choices), choices)
    return options


def _as_written(node: ast.expr, module: str) -> str:
    """A default as one writes it in a recipe: null, true, 1e-06, reverse, [1, 2]."""
    try:
        return recipe_text(evaluate(node, module))
    except ValueError:
        return ast.unparse(node)


def recipe_text(value: object) -> str:
    """A plain value as one writes it in a recipe, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(recipe_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {recipe_text(item)}' for key, item in value.items())}}}"
    quoted = isinstance(value, str) and value[:1] in ("", "{", "[")  # bare, YAML reads something else
    return json.dumps(value, ensure_ascii=False) if quoted else str(value)


def _literal_choices(annotation: ast.expr | None) -> tuple[str, ...]:
    """Of `Literal["a", "b"]`, also where None may stand instead."""
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "Literal":
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(str(item.value) for item in items if isinstance(item, ast.Constant))
    return ()


def _one_of(choices: Sequence[str]) -> str:
    shown = choices if len(choices) <= MAX_CHOICES else [*choices[:MAX_CHOICES], "…"]
    return f"one of {', '.join(shown)}" if choices else ""


_IN_WORDS: dict[str, Callable[[str], str]] = {
    "positive": lambda bound: "above 0",
    "not_negative": lambda bound: "at least 0",
    "at_least": lambda bound: f"at least {bound}",
    "between": lambda bound: f"in {bound}",
}


def _rules(function: ast.FunctionDef, module: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Parameter → what `paddle_tfm.validators` requires of it in this constructor, and the only values allowed."""
    rules: dict[str, tuple[str, tuple[str, ...]]] = {}
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        names = [key.arg for key in call.keywords if key.arg is not None and getattr(key.value, "id", "") == key.arg]
        bound = value_or_none(call.args[0], module) if call.args else None
        if call.func.id in _IN_WORDS:
            sentence = _IN_WORDS[call.func.id](str(bound))
            rules |= {name: (f"{rules[name][0]}, {sentence}" if name in rules else sentence, ()) for name in names}
        elif call.func.id == "one_of" and bound is not None:
            choices = tuple(map(str, bound))
            rules |= {name: (_one_of(choices), choices) for name in names}
        elif call.func.id == "divides" and len(names) > 1:
            rules |= {names[0]: (f"a divisor of {names[1]}", ())}
    return rules


def papers(docstring: str) -> list[str]:
    """The arXiv numbers that a docstring names, each once."""
    return list(dict.fromkeys(re.findall(r"arXiv:(\d{4}\.\d{4,5})", docstring)))


def first_paragraph(target: type | str) -> str:
    """Of the class's docstring, on one line; "" where there is none."""
    if isinstance(target, type):
        text = inspect.getdoc(target) or ""
    else:
        definition = find_definition(*place(target), ast.ClassDef)
        text = ClassSource(*definition).docstring if definition is not None else ""
    return " ".join(text.split("\n\n")[0].split())
