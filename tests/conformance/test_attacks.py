"""The kit beside bugs and right variants that were written without reading it: bugs fail, right variants pass."""

import functools
import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "attacks"))
from bugs import BUGS, HERE, Bug

from paddle_tfm import create_registry
from paddle_tfm.protocols.component import Component
from paddle_tfm.testing import FAIL, checks, examine, with_class

pytestmark = [pytest.mark.conformance, pytest.mark.exhaustive]
FILES = sorted(path.stem.removeprefix("right_") for path in HERE.glob("right_*.py"))
SEEN = [bug for bug in BUGS if bug.caught_by]


def classes(text: str, file: str) -> dict[str, type]:
    """The component classes that a source defines."""
    module = types.ModuleType(f"attack_{file}")
    sys.modules[module.__name__] = module  # where dataclasses look for themselves
    exec(compile(text, f"right_{file}.py", "exec"), module.__dict__)
    own = {name: cls for name, cls in vars(module).items() if getattr(cls, "__module__", "") == module.__name__}
    return {name: cls for name, cls in own.items() if isinstance(cls, type) and issubclass(cls, Component)}


@functools.cache
def right(file: str) -> dict[str, type]:
    return classes((HERE / f"right_{file}.py").read_text(encoding="utf-8"), file)


RIGHT = [(file, name) for file in FILES for name in right(file)]


def report(cls: type, only: frozenset[str] = frozenset()):
    registry = create_registry()
    return examine(*with_class(registry, cls), registry=registry, only=only)


@pytest.mark.parametrize(("file", "name"), RIGHT)
def test_what_is_right_passes(file, name):
    cls = right(file)[name]
    invariants = frozenset(check.name for check in checks(cls.kind) if not check.information)
    assert [str(outcome) for outcome in report(cls, invariants).failures] == []


@pytest.mark.parametrize("bug", SEEN, ids=str)
def test_a_bug_that_breaks_an_invariant_fails_by_the_check_that_names_it(bug: Bug):
    cls = classes(bug.source(), bug.file)[bug.cls]
    outcome = report(cls, frozenset({bug.caught_by}))[bug.caught_by]
    assert outcome.status == FAIL, f"{bug.caught_by}: {outcome.status} {outcome.detail}"
    assert "NameError" not in outcome.detail


def test_there_are_enough_of_both():
    assert len(RIGHT) >= 40
    assert len(SEEN) >= 75
    assert len({str(bug) for bug in BUGS}) == len(BUGS)
