"""Options that no line of a class reads, by its source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator

import paddle_tfm.protocols as protocols
from paddle_tfm import validators
from paddle_tfm.component_source import class_definition, module_tree

CHECKING = {name for name, value in vars(validators).items() if inspect.isfunction(value)}
SHOWING = {"extra_repr", "__repr__", "__str__"}
EVERYTHING = {"locals", "vars", "__dict__", "getattr"}  # who asks for these may read all


def unread(cls: type) -> frozenset[str]:
    """Parameters of a constructor that no line reads: they are only checked, only shown, or only kept in an attribute
    that no line of the class, its superclasses and their files reads. What cannot be known is left out."""
    if class_definition(cls.__module__, cls.__qualname__) is None:
        return frozenset()
    classes = [each for each in cls.__mro__ if _top(each) not in {"paddle", *sys.stdlib_module_names}]
    words: set[str] = set()
    for module in {each.__module__ for each in classes}:
        source = module_tree(module)
        own = set(_read(source)) if source is not None else EVERYTHING
        if own & EVERYTHING and not module.startswith("paddle_tfm."):
            return frozenset()
        words |= own
    idle: set[str] = set()
    seen: set[str] = set()
    for each in classes:
        definition = class_definition(each.__module__, each.__qualname__)
        functions = (node for node in definition.body if isinstance(node, ast.FunctionDef)) if definition else ()
        constructor = next((node for node in functions if node.name == "__init__"), None)
        if constructor is None:
            continue
        arguments = constructor.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
        uses = {name: _uses(constructor, name) for name in names if name not in seen}
        idle |= {name for name, kept in uses.items() if kept is not None and not kept & words and not _known(kept)}
        seen |= uses.keys()
        if arguments.kwarg is None:
            break
    return frozenset(idle)


def _top(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _read(module: ast.AST) -> Iterator[str]:
    """Attributes that are read in a module, and names that are called, but for what is only shown."""
    for node in ast.iter_child_nodes(module):
        if isinstance(node, ast.FunctionDef) and node.name in SHOWING:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        if isinstance(node, ast.Name) and node.id in EVERYTHING:
            yield node.id
        yield from _read(node)


def _uses(constructor: ast.FunctionDef, name: str) -> set[str] | None:
    """The attributes that keep a parameter; None where it is read otherwise."""
    kept: set[str] = set()
    for node in _beside_checks(constructor.body):
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _pairs(target, node.value)]
            if any(name in _loaded(value) and not _keeps(target, value) for target, value in pairs):
                return None
            kept |= {str(getattr(target, "attr", "")) for target, value in pairs if name in _loaded(value)}
        elif name in _loaded(node):
            return None
    return kept


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _keeps(target: ast.expr, value: ast.expr) -> bool:
    """Whether it is `self.attribute = parameter`."""
    of_self = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    return of_self and isinstance(value, ast.Name)


def _loaded(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _beside_checks(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements but those that only refuse values."""
    for node in body:
        if isinstance(node, ast.If) and all(isinstance(each, ast.Raise) for each in node.body) and not node.orelse:
            continue
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if getattr(called, "id", None) in CHECKING:
            continue
        yield node


def _known(attributes: set[str]) -> bool:
    """Whether the engine may read one of them: it is declared by a protocol."""
    classes = [value for value in vars(protocols).values() if inspect.isclass(value)]
    return any(hasattr(each, attribute) for each in classes for attribute in attributes)
