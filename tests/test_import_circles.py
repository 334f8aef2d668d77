"""No file imports, directly or through others, a file that imports it."""

import ast
from pathlib import Path

import paddle_tfm

ROOT = Path(paddle_tfm.__file__).parent


def name_of(file: Path) -> str:
    return ".".join(("paddle_tfm", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def imports(file: Path, modules) -> set[str]:
    """The modules of the package that a file imports anywhere, also for type checkers only."""
    tree = ast.parse(file.read_text("utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in modules else node.module for name in whole}
    return names & modules.keys() - {name_of(file)}


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    names, pending = set(), [start]
    while pending:
        new = graph[pending.pop()] - names
        names |= new
        pending += new
    return names


def circles(root: dict[str, set[str]]) -> list[str]:
    return sorted(name for name in root if name in reached(name, root))


def test_there_is_no_circle():
    modules = {name_of(file): file for file in ROOT.rglob("*.py")}
    graph = {name: imports(file, modules) for name, file in modules.items()}
    assert "paddle_tfm.sweep.workers" in graph["paddle_tfm.sweep.sweep"]
    assert circles(graph) == []
