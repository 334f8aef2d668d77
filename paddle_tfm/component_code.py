"""The code of a component, so that two runs can say whether they had the same: the module that defines its class, and
what that imports of the packages of its plugin. All is read from the text of the modules; none is imported for it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from paddle_tfm.component_source import FORMS, imported_from, module_file, module_tree
from paddle_tfm.plugins import Provider, source_hash

AT_RUN_TIME = {"import_module", "__import__", "exec", "eval"}  # what is imported by these is not in the text


def identity(cls: type, provider: Provider) -> str:
    """What of a component determines a run's numbers: its plugin and that one's version, and a hash of its code, which
    may change under the same version where it is installed with `pip install -e`."""
    if provider.is_file:
        return provider.identity  # the hash of the file
    return f"{provider.identity} {code_hash(cls, provider.package)}".strip()


@functools.lru_cache(maxsize=1024)
def code_hash(cls: type, package: str = "") -> str:
    """`sha256:…` of the files of a class; "" where there is none.

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
        nodes = [] if tree is None else [*ast.walk(tree)]
        waiting += _imports(name, nodes)
        if _imports_at_run_time(nodes):
            files |= _all_of(name.partition(".")[0])
    return files


def _imports(module: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The modules that a module imports anywhere in its text; those of which it imports names that are no modules."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = imported_from(module, node)
            for alias in node.names:
                within = f"{above}.{alias.name}"
                yield above if module_file(within) is None else within


def _imports_at_run_time(nodes: Iterable[ast.AST]) -> bool:
    """Whether one of these is named, whatever their module is renamed to."""
    return any(getattr(node, field, None) in AT_RUN_TIME for node in nodes for field in ("id", "attr", "name"))


def _all_of(package: str) -> dict[str, Path]:
    """All code that lies in a package."""
    file = module_file(package)
    if file is None or file.name != "__init__.py":
        return {}
    top = file.parent
    files = (each for each in top.rglob("*") if each.name.endswith(FORMS) and each.is_file())
    return {".".join((package, *each.relative_to(top).parts)): each for each in files}
