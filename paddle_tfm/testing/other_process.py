"""What another process of the same program would have otherwise: hashes of texts, with them the order of sets, and the
global random states."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import math
import random
import sys
import types
from collections.abc import Iterator

import numpy as np

from paddle_tfm.component_source import module_tree

SMALL_NUMBERS = math.lcm(*range(1, 41))


@contextlib.contextmanager
def as_in_another_process() -> Iterator[None]:
    """Within this block hashes of texts are others, as Python draws them for each process, and the global random
    states too. Their remainders by every number up to 40, and by its multiples, are others as well: of two processes
    that are drawn, one in seven pairs agrees in `hash(text) % 7`."""
    usual, states = builtins.hash, (random.getstate(), np.random.get_state())

    def other_hash(value: object) -> int:
        if isinstance(value, tuple):  # such as (seed, path): its hash is made of theirs
            return usual(tuple(other_hash(part) for part in value))
        if not isinstance(value, (str, bytes)):
            return usual(value)
        other = usual(("another process", value))
        other -= (other - usual(value) - 1) % SMALL_NUMBERS
        return other if other >= -sys.maxsize else other + SMALL_NUMBERS

    builtins.hash = other_hash
    random.seed(4321)
    np.random.seed(4321)
    try:
        yield
    finally:
        builtins.hash = usual
        random.setstate(states[0])
        np.random.set_state(states[1])


class OtherOrder(set):
    """A set that is gone through in another order, as those of texts are in another process."""

    def __iter__(self) -> Iterator:
        return iter(sorted(super().__iter__(), key=lambda each: (str(type(each)), str(each)[::-1])))


class _Sets(ast.NodeTransformer):
    """Sets of a source become `OtherOrder`."""

    def visit_Set(self, node: ast.Set) -> ast.AST:
        return self._other(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self._other(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return self._other(node) if isinstance(node.func, ast.Name) and node.func.id == "set" else node

    def _other(self, node: ast.expr) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name("_OtherOrder", ast.Load()), [node], []), node)


def in_another_order(cls: type) -> type | None:
    """The class as its file defines it once more, each set in it gone through in another order; None where the file is
    not known or has no set."""
    module, tree = sys.modules.get(cls.__module__), module_tree(cls.__module__)
    if module is None or tree is None or "." in cls.__qualname__:
        return None
    changed = ast.fix_missing_locations(_Sets().visit(copy.deepcopy(tree)))
    if ast.dump(changed) == ast.dump(tree):
        return None
    other = types.ModuleType(cls.__module__)
    vars(other).update({"__file__": module.__file__, "__package__": module.__package__, "_OtherOrder": OtherOrder})
    exec(compile(changed, str(module.__file__), "exec"), vars(other))
    return vars(other).get(cls.__name__)
