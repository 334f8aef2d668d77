"""The text of a component's module, read without importing it: lists show docstrings at once, where importing Paddle
takes two seconds, and the hash of a component's code follows imports."""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import importlib.util
import inspect
import re
import sys
from pathlib import Path

FORMS = (".py", *importlib.machinery.EXTENSION_SUFFIXES)  # how the file of a module ends
MAX_IMPORTS = 8  # that are followed to a class


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


def module_tree(module: str) -> ast.Module | None:
    """A module's source, parsed; None where there is none."""
    file = module_file(module)
    try:
        # Two plugin files of one name are one module after the other.
        return None if file is None else _parsed(file, file.stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=512)
def _parsed(file: Path, changed: int) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def imported_from(module: str, item: ast.ImportFrom) -> str:
    """From which module that statement of `module` imports."""
    if not item.level:
        return item.module or ""
    names, file = module.split("."), module_file(module)
    if file is not None and file.name == "__init__.py":
        names.append("__init__")
    parent = ".".join(names[: -item.level])
    return f"{parent}.{item.module}" if item.module else parent


def class_definition(module: str, name: str, followed: int = 0) -> ast.ClassDef | None:
    """The statement that defines a class, looked for through imports."""
    tree = module_tree(module)
    if tree is None or followed > MAX_IMPORTS:
        return None
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return class_definition(imported_from(module, node), alias.name, followed + 1)
    return None


def docstring(target: type | str) -> str:
    """Of a class, or of where it is: `package.module:Class`; "" where there is none."""
    if isinstance(target, type):
        return inspect.getdoc(target) or ""
    module, _, name = target.partition(":")
    definition = class_definition(module, name)
    return "" if definition is None else ast.get_docstring(definition) or ""


def papers(text: str) -> list[str]:
    """The arXiv numbers that a docstring names, each once."""
    return list(dict.fromkeys(re.findall(r"arXiv:(\d{4}\.\d{4,5})", text)))
