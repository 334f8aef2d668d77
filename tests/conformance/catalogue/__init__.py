"""The catalogue that the kit is proved by: classes that must fail, each by the check that names what is wrong with it, and
classes that must pass.

Each is an edit of a right class, named by

- the file of its class `Twin` in `right/` ("attention"), written to be broken,
- a file there and a class ("norm_variants:UnitLength"), written from papers by somebody who had not read the kit, or
- kind/name of a component that is shipped ("attention/gated").

A file of this folder holds those of a kind as tables, by the right class: `WRONG`, `WRONG_IN_A_FILE` (seen where the class
stands in a file), `UNREAD` (an option that no line reads) and `RIGHT` (another right class). `headlines` has those that are
judged by the words of a report.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import random
import sys
import types
from dataclasses import dataclass
from pathlib import Path

from paddle_tfm import create_registry
from paddle_tfm.testing import Report, examine, with_class
from paddle_tfm.testing.lookup import examine_class

TABLES = [
    importlib.import_module(f"catalogue.{file.stem}")
    for file in sorted(Path(__file__).parent.glob("*.py"))
    if file.stem != "__init__"
]
RIGHT_CLASSES = Path(__file__).parent / "right"
AS_KIND = {  # of ordinary layers
    "full_width": "attention",
    "ordinary_feed_forward": "feed_forward",
    "ordinary_attention": "attention",
    "ordinary_norm": "norm",
    "ordinary_position": "position",
    "self_attention": "attention",
    "transformer": "encoder-decoder",
}
MASK = {"ordinary_attention": "allowed", "full_width": "allowed"}  # what their masks say


@dataclass(frozen=True)
class Edited:
    """The class `of` with `changes`."""

    of: str
    name: str
    changes: tuple[tuple[str, str], ...]
    caught_by: str = ""  # "": it is right as well, and no check may fail
    unread: str = ""  # the option that it does not read
    says: str = ""  # words of the first line of its report
    known: str = ""  # the component whose formula it nearly is
    table: str = ""  # the file of this folder

    def __str__(self) -> str:
        return f"{self.of.rpartition(':')[2]}: {self.name}"

    def source(self) -> str:
        """The whole file. Raises ValueError where it does not have what is changed, once."""
        text = source(self.of)
        for was, becomes in self.changes:
            text = edited(text, was, becomes, self)
        return text

    def lines(self) -> int:
        """How many lines are changed, added or removed."""
        changes = [line[:1] for line in difflib.ndiff(source(self.of).splitlines(), self.source().splitlines())]
        return max(changes.count("-"), changes.count("+"))


def wrong(of: str, name: str, was: str, becomes: str, caught_by: str, **more: str) -> Edited:
    return Edited(of, name, ((was, becomes),), caught_by, **more)


def edited(text: str, was: str, becomes: str, what) -> str:
    """The text with one change. Raises ValueError if it does not have what is changed, once."""
    if text.count(was) != 1:
        raise ValueError(f"{what}: the source has {was!r} {text.count(was)} times")
    return text.replace(was, becomes)


def source(of: str) -> str:
    path = RIGHT_CLASSES / f"{of.partition(':')[0]}.py"
    if "/" in of:
        path = Path(importlib.util.find_spec(_module(of)).origin)
    return path.read_text(encoding="utf-8")


def _module(of: str) -> str:
    return f"paddle_tfm_plugins.{of.replace('/', '.')}"


def build(text: str, of: str) -> type:
    """The class of a right class's file, or of an edit of it."""
    module = types.ModuleType(f"{_module(of)}_edited" if "/" in of else f"right_{of.partition(':')[0]}")
    sys.modules[module.__name__] = module  # where dataclasses look for themselves
    exec(compile(text, f"{of.replace('/', '_')}.py", "exec"), module.__dict__)
    return getattr(module, class_name(of))


def report(text: str, of: str, only: frozenset[str] = frozenset()) -> Report:
    """What the kit says of the class in a source."""
    cls = build(text, of)
    if of in AS_KIND:
        return examine_class(AS_KIND[of], cls, {}, MASK.get(of), only=only)
    return examined(cls, only)


def examined(cls: type, only: frozenset[str] = frozenset()) -> Report:
    """What the kit says of a class that nobody registered."""
    registry = create_registry()
    return examine(*with_class(registry, cls), registry=registry, only=only)


def class_name(of: str) -> str:
    if "/" in of:
        return create_registry().entry(*of.split("/")).target.partition(":")[2]
    return of.partition(":")[2] or "Twin"


def right_classes() -> list[str]:
    """All classes of `right/`, as edits name them."""
    found = []
    for path in sorted(RIGHT_CLASSES.glob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        classes = [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        found += [path.stem] if "Twin" in classes else [f"{path.stem}:{name}" for name in classes]
    return found


def _rows(name: str):
    """(file of this folder, right class, row) of the tables of this name."""
    for file in TABLES:
        for of, rows in getattr(file, name, {}).items():
            for row in rows:
                yield file.__name__, of, row


WRONG = [wrong(of, *row) for _, of, row in _rows("WRONG")]
WRONG_IN_A_FILE = [wrong(of, *row) for _, of, row in _rows("WRONG_IN_A_FILE")]
UNREAD = [wrong(of, *row, "options", unread=option) for _, of, (*row, option) in _rows("UNREAD")]
RIGHT = [Edited(of, name, tuple(changes), table=table) for table, of, (name, changes) in _rows("RIGHT")]
HEADLINES = [Edited(of, name, tuple(changes), says=words) for _, of, (name, changes, words) in _rows("HEADLINES")]
FORMULAS = [
    Edited(of, name, tuple(changes), known=known, says=words)
    for _, of, (name, changes, known, words) in _rows("FORMULAS")
]


def one_of_each_table(cases: list[Edited]) -> set[Edited]:
    """One case of each file of this folder, the same at every run."""
    draw, names = random.Random(11), sorted({case.table for case in cases})
    return {draw.choice([case for case in cases if case.table == name]) for name in names}
