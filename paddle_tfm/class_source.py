"""Classes and values as a module's source has them, read without importing it: followed through imports, and values
only where they are literals or made of literals."""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMS = (".py", *importlib.machinery.EXTENSION_SUFFIXES)  # how the file of a module ends


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


# ------------------------------------------------------------------------------------------------------------- classes


def place(target: type | str) -> tuple[str, str]:
    """(module, name) of a class, or of where it is: `package.module:Class`."""
    if isinstance(target, type):
        return target.__module__, target.__qualname__
    module, _, name = target.partition(":")
    return module, name


def module_tree(module: str) -> ast.Module | None:
    """A module's source, parsed; None where there is none. No module is imported, not even a parent package."""
    file = module_file(module)
    try:
        # Two plugin files of one name are one module after the other.
        return None if file is None else _parsed(file, file.stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return None


def module_file(module: str) -> Path | None:
    """Where a module comes from; None where that is no file. No module is imported, not even a parent package."""
    loaded = sys.modules.get(module)
    try:
        if loaded is not None and getattr(loaded, "__file__", None):
            return Path(str(loaded.__file__))
        return _not_loaded(module)
    except (ImportError, OSError, ValueError):
        return None


@functools.lru_cache(maxsize=512)
def _parsed(file: Path, changed: int) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


@functools.lru_cache(maxsize=512)
def _not_loaded(module: str) -> Path | None:
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or (rest and not spec.submodule_search_locations):
        return None
    for folder in spec.submodule_search_locations or [str(Path(spec.origin or "").parent)]:
        place = Path(folder, *rest)
        modules = [place.with_name(place.name + form) for form in FORMS] if rest else [Path(spec.origin or "")]
        for file in (place / "__init__.py", *modules):
            if file.is_file():
                return file
    return None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, and those of its `if` and `try` blocks."""
    for item in body:
        yield item
        if isinstance(item, (ast.If, ast.Try)):
            yield from _statements([*item.body, *item.orelse])


def find_definition(module: str, name: str, kind: type[ast.stmt], depth: int = 0) -> tuple[str, Any] | None:
    """(module, statement) that defines a name as a class or a value, looked for through imports."""
    tree = module_tree(module)
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
                    return find_definition(imported_from(module, item), alias.name, kind, depth + 1)
    return None


def imported_from(module: str, item: ast.ImportFrom) -> str:
    """From which module that statement of `module` imports."""
    if not item.level:
        return item.module or ""
    names, file = module.split("."), module_file(module)
    if file is not None and file.name == "__init__.py":
        names.append("__init__")
    parent = ".".join(names[: -item.level])
    return f"{parent}.{item.module}" if item.module else parent


def lineage(module: str, name: str) -> list[ClassSource]:
    """The class and its superclasses; one that is inherited twice stands at its last place."""
    definition = find_definition(module, name, ast.ClassDef)
    if definition is None:
        return []
    classes = [ClassSource(*definition)]
    for base in definition[1].bases:
        if isinstance(base, ast.Name):
            inherited = lineage(definition[0], base.id)
            nodes = {each.node for each in inherited}
            classes = [each for each in classes if each.node not in nodes] + inherited
    return classes


# -------------------------------------------------------------------------------------------------------------- values


def evaluate(node: ast.expr, module: str) -> Any:
    """The value of an expression of literals, of the module's constants, and of frozenset, set, tuple, list and dict
    made of those; ValueError for any other."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        items = [evaluate(item, module) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        result: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values):
            result |= evaluate(item, module) if key is None else {evaluate(key, module): value_or_none(item, module)}
        return result
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("frozenset", "set", "tuple", "list", "sorted") and len(node.args) < 2:
            return tuple(evaluate(node.args[0], module)) if node.args else ()
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluate(node.operand, module)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.Add)):
        left, right = evaluate(node.left, module), evaluate(node.right, module)
        return {**left, **right} if isinstance(left, dict) else left + right
    if isinstance(node, ast.Name) and (definition := find_definition(module, node.id, ast.Assign)) is not None:
        return evaluate(definition[1].value, definition[0])
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        for each in lineage(module, node.value.id):
            if (value := each.own_value(node.attr)) is not None:
                return evaluate(value, each.module)
    raise ValueError(f"cannot be read: {ast.unparse(node)}")


def value_or_none(node: ast.expr, module: str) -> Any:
    """A mapping's value, or None where only its key can be read."""
    try:
        return evaluate(node, module)
    except ValueError:
        return None
