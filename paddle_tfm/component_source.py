"""The text of a component's module, read without importing it: lists show docstrings at once, where importing Paddle
takes two seconds; and the hash of a component's code, by which two runs can say whether they had the same."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from paddle_tfm.plugins import Provider, source_hash

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
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py") if rest else Path(spec.origin or "")):
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


# ------------------------------------------------------------------------------------------------- the hash of its code


def identity(cls: type, provider: Provider) -> str:
    """What of a component determines a run's numbers: its plugin and that one's version, and a hash of its code, which
    may change under the same version where it is installed with `pip install -e`."""
    if provider.is_file:
        return provider.identity  # the hash of the file
    return f"{provider.identity} {code_hash(cls, provider.package)}".strip()


@functools.lru_cache(maxsize=1024)
def code_hash(cls: type, package: str = "") -> str:
    """`sha256:…` of the files of a class: of the module that defines it, and of what that imports of the packages of
    its plugin; "" where there is none.

    Args:
        package: of its plugin, beside the one that it is in itself.
    """
    module = cls.__module__
    files = _files(module, {module.partition(".")[0], package})
    parts = [(name.encode(), file.read_bytes()) for name, file in sorted(files.items())]
    return source_hash(b"".join(b"%s\0%d\0%s" % (name, len(text), text) for name, text in parts)) if parts else ""


def _files(module: str, packages: set[str]) -> dict[str, Path]:
    """Module → file, of a module and of all that it imports from these packages, and they from there."""
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = module_file(name) if name.partition(".")[0] in packages else None
        if name in files or file is None:
            continue
        files[name] = file
        tree = module_tree(name)
        waiting += [] if tree is None else _imports(name, tree)
    return files


def _imports(module: str, tree: ast.Module) -> Iterator[str]:
    """The modules that a module imports anywhere in its text; those of which it imports names that are no modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = imported_from(module, node)
            for alias in node.names:
                within = f"{above}.{alias.name}"
                yield above if module_file(within) is None else within
