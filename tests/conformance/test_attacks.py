"""The kit beside bugs and right variants that were written without reading it: bugs fail, right variants pass."""

import functools
import sys
import types
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "attacks"
sys.path.insert(0, str(HERE))
from bugs import BUGS, Bug

from paddle_tfm import create_registry
from paddle_tfm.protocols.component import Component
from paddle_tfm.testing import examine, with_class

pytestmark = pytest.mark.conformance
FILES = sorted(path.stem.removeprefix("right_") for path in HERE.glob("right_*.py"))


def classes(text: str, file: str) -> dict[str, type]:
    """The component classes that a source defines."""
    module = types.ModuleType(f"attack_{file}")
    sys.modules[module.__name__] = module
    exec(compile(text, f"right_{file}.py", "exec"), module.__dict__)
    own = {name: cls for name, cls in vars(module).items() if getattr(cls, "__module__", "") == module.__name__}
    return {name: cls for name, cls in own.items() if isinstance(cls, type) and issubclass(cls, Component)}


@functools.cache
def right(file: str) -> dict[str, type]:
    return classes((HERE / f"right_{file}.py").read_text(encoding="utf-8"), file)


def failures(cls: type) -> dict[str, str]:
    registry = create_registry()
    return {outcome.check.name: outcome.detail for outcome in examine(*with_class(registry, cls), registry=registry).failures}


@pytest.mark.parametrize(("file", "name"), [(file, name) for file in FILES for name in right(file)])
def test_what_is_right_passes(file, name):
    assert failures(right(file)[name]) == {}


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.law], ids=str)
def test_a_bug_that_breaks_an_invariant_fails(bug: Bug):
    assert failures(classes(bug.source(), bug.file)[bug.cls])
