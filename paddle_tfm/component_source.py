"""What a component's source says, read without importing it: docstring, options with defaults and ranges, givens,
expected failures. Lists, `show` and completion answer with it at once, where importing Paddle takes two seconds.

It follows classes through imports and `**parent` constructors, as `registry.parameters` does on classes; tests hold the
two together. What cannot be read (a class made by a function, a value computed in code) is left out.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_CHOICES = 24  # that are written out


@dataclass(frozen=True)
class OptionSource:
    """One parameter of a constructor, as its source has it.

    Args:
        annotation: as written; "" if there is none. default: as written; None if it is required. rule: what its value
            must be, in words; "" if nothing checks it with `paddle_tfm.validators`. choices: if only those are allowed.
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


@dataclass(frozen=True, eq=False)
class ClassSource:
    """A class definition, and the module that it stands in."""

    module: str
    node: ast.ClassDef

    @property
    def docstring(self) -> str:
        """Cleaned; "" if there is none."""
        return ast.get_docstring(self.node) or ""

    def own_value(self, name: str) -> ast.expr | None:
        """What the body assigns to this name."""
        for item in self.node.body:
            targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
            if isinstance(item, (ast.Assign, ast.AnnAssign)) and item.value is not None:
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    return item.value
        return None

    def constructor(self) -> ast.FunctionDef | None:
        """Its own `__init__`."""
        functions = (item for item in self.node.body if isinstance(item, ast.FunctionDef))
        return next((item for item in functions if item.name == "__init__"), None)


class ComponentSource:
    """A component's class with its superclasses, in the order in which Python would look through them."""

    def __init__(self, target: type | str):
        self.lineage = _lineage(*_place(target))

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
                    return _evaluate(node, each.module)
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
    module, _ = _place(target)
    try:
        names = {node.id for node in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(node, ast.Name)}
    except SyntaxError:
        return ""
    for name in sorted(names):
        for each in _lineage(module, name):
            if (kind := each.own_value("kind")) is not None:
                return str(_evaluate(kind, each.module))
    return ""


# ------------------------------------------------------------------------------------------------------------- classes


def _place(target: type | str) -> tuple[str, str]:
    if isinstance(target, type):
        return target.__module__, target.__qualname__
    module, _, name = target.partition(":")
    return module, name


@functools.lru_cache(maxsize=512)
def _tree(module: str) -> ast.Module | None:
    """A module's source, parsed; None where there is none. No module is imported, not even a parent package."""
    try:
        loaded = sys.modules.get(module)
        if loaded is not None and getattr(loaded, "__file__", None):
            return ast.parse(Path(str(loaded.__file__)).read_text("utf-8"))
        top, *rest = module.split(".")
        spec = importlib.util.find_spec(top)
        if spec is None or (rest and not spec.submodule_search_locations):
            return None
        for folder in spec.submodule_search_locations or [str(Path(spec.origin or "").parent)]:
            place = Path(folder, *rest)
            for file in (place / "__init__.py", place.with_suffix(".py") if rest else Path(spec.origin or "")):
                if file.is_file():
                    return ast.parse(file.read_text("utf-8"))
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
    return None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, and those of its `if` and `try` blocks."""
    for item in body:
        yield item
        if isinstance(item, (ast.If, ast.Try)):
            yield from _statements([*item.body, *item.orelse])


def _find(module: str, name: str, kind: type[ast.stmt], depth: int = 0) -> tuple[str, Any] | None:
    """(module, statement) that defines a name as a class or a value, looked for through imports."""
    tree = _tree(module)
    if tree is None or depth > 8:
        return None
    for item in _statements(tree.body):
        if isinstance(item, ast.ClassDef) and item.name == name and kind is ast.ClassDef:
            return module, item
        if isinstance(item, ast.Assign) and kind is ast.Assign and getattr(item.targets[0], "id", None) == name:
            return module, item
        if isinstance(item, ast.AnnAssign) and kind is ast.Assign and getattr(item.target, "id", None) == name:
            return module, item
        if isinstance(item, ast.ImportFrom):
            for alias in item.names:
                if (alias.asname or alias.name) == name:
                    return _find(_absolute(module, item), alias.name, kind, depth + 1)
    return None


def _absolute(module: str, item: ast.ImportFrom) -> str:
    if not item.level:
        return item.module or ""
    parent = module.rsplit(".", item.level)[0]
    return f"{parent}.{item.module}" if item.module else parent


def _lineage(module: str, name: str) -> list[ClassSource]:
    """The class and its superclasses; one that is inherited twice stands at its last place."""
    definition = _find(module, name, ast.ClassDef)
    if definition is None:
        return []
    classes = [ClassSource(*definition)]
    for base in definition[1].bases:
        if isinstance(base, ast.Name):
            inherited = _lineage(definition[0], base.id)
            nodes = {each.node for each in inherited}
            classes = [each for each in classes if each.node not in nodes] + inherited
    return classes


# -------------------------------------------------------------------------------------------------------------- values


def _evaluate(node: ast.expr, module: str) -> Any:
    """The value of an expression of literals, of the module's constants, and of frozenset, set, tuple, list and dict
    made of those; ValueError for any other."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        items = [_evaluate(item, module) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        result: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values):
            result |= _evaluate(item, module) if key is None else {_evaluate(key, module): _lenient(item, module)}
        return result
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("frozenset", "set", "tuple", "list", "sorted") and len(node.args) < 2:
            return tuple(_evaluate(node.args[0], module)) if node.args else ()
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, module)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.Add)):
        left, right = _evaluate(node.left, module), _evaluate(node.right, module)
        return {**left, **right} if isinstance(left, dict) else left + right
    if isinstance(node, ast.Name) and (definition := _find(module, node.id, ast.Assign)) is not None:
        return _evaluate(definition[1].value, definition[0])
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        for each in _lineage(module, node.value.id):
            if (value := each.own_value(node.attr)) is not None:
                return _evaluate(value, each.module)
    raise ValueError(f"cannot be read: {ast.unparse(node)}")


def _lenient(node: ast.expr, module: str) -> Any:
    """A mapping's value, or None where only its key can be read."""
    try:
        return _evaluate(node, module)
    except ValueError:
        return None


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
            fixed = () if value is None else _evaluate(value, each.module)
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
        return recipe_text(_evaluate(node, module))
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
    return '""' if value == "" else str(value)


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
        bound = _lenient(call.args[0], module) if call.args else None
        if call.func.id in _IN_WORDS:
            sentence = _IN_WORDS[call.func.id](str(bound))
            rules |= {name: (f"{rules[name][0]}, {sentence}" if name in rules else sentence, ()) for name in names}
        elif call.func.id == "one_of" and bound is not None:
            choices = tuple(map(str, bound))
            rules |= {name: (_one_of(choices), choices) for name in names}
        elif call.func.id == "divides" and len(names) > 1:
            rules |= {names[0]: (f"a divisor of {names[1]}", ())}
    return rules


def first_paragraph(target: type | str) -> str:
    """Of the class's docstring, on one line; "" where there is none."""
    if isinstance(target, type):
        text = inspect.getdoc(target) or ""
    else:
        definition = _find(*_place(target), ast.ClassDef)
        text = ClassSource(*definition).docstring if definition is not None else ""
    return " ".join(text.split("\n\n")[0].split())
