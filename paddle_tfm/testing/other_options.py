"""A component at other values of its options: what each of them changes, and which choices there are."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

import paddle_tfm.protocols as protocols
from paddle_tfm import validators
from paddle_tfm.component_source import class_definition, module_tree
from paddle_tfm.errors import UserError
from paddle_tfm.options import Option
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.models.size import ONE_SENTENCE
from paddle_tfm.testing.results import Failed, Note, Result, Skip, some

SMALL = (1, 10)  # what counts steps acts early
SWITCHED_ON = 0.1
NO_CHOICE = "no-such-choice"
MOST_CHOICES = 8  # of an option, tried
EXTREMES = (0.01, 100.0)  # times a number's default: what acts on large numbers only acts on those of a small model too
SMALLEST, UNSET = (1, 2), (0.5, 2.0)  # of a whole number; of a number that is not set

CHECKING = {name for name, value in vars(validators).items() if inspect.isfunction(value)}
SHOWING = {"extra_repr", "__repr__", "__str__"}
EVERYTHING = {"locals", "vars", "__dict__", "getattr"}  # who asks for these may read all

Observe = Callable[[Mapping[str, object]], Iterator[np.ndarray]]

OPTIONS: dict[str, Any] = {  # of the check `options`, whatever is observed
    "invariant": "each option changes something",
    "consequence": "a recipe sets it without effect: a sweep over it compares a variant with itself",
    "hint": "an option that is only stored, or only checked: read it where the formula has it, or leave it out",
    "information": True,
}


def other_values(option: Option) -> list[object]:
    """Values that an option may have instead of its default: the other choices, or of a number smaller and
    larger ones; none where a default says nothing about others, as None, a text and a list do not."""
    if typing.get_origin(option.annotation) is typing.Literal:
        return [value for value in typing.get_args(option.annotation) if value != option.default]
    if isinstance(option.default, bool):
        return [not option.default]
    if isinstance(option.default, int):
        return [value for value in (option.default // 2, 2 * option.default + 1) if value != option.default]
    if isinstance(option.default, float):
        return [option.default / 4, option.default / 2, 4 * option.default] if option.default else [0.4]
    return []


def choices_of(subject: ComponentUnderTest) -> Iterator[tuple[str, object]]:
    """(option, value) of all choices and switches but the defaults. Those of a text are what its constructor names
    where it refuses another (`validators.one_of`)."""
    for option in subject.options():
        if isinstance(option.default, bool) or typing.get_origin(option.annotation) is typing.Literal:
            values = other_values(option)
        elif isinstance(option.default, str):
            values = [value for value in _named_choices(subject, option.name) if value != option.default]
        else:
            continue
        yield from ((option.name, value) for value in values[:MOST_CHOICES])


def numbers_of(subject: ComponentUnderTest) -> Iterator[tuple[str, object]]:
    """(option, value) of small and large values of all numbers, of those too that are None unless they are set."""
    for option in subject.options():
        default, kinds = option.default, {option.annotation, *typing.get_args(option.annotation)}
        values: list[object] = []
        if isinstance(default, float) or (default is None and float in kinds):
            values += [factor * default for factor in EXTREMES] if default else UNSET
        elif (isinstance(default, int) and not isinstance(default, bool)) or (default is None and int in kinds):
            values += SMALLEST
        yield from ((option.name, value) for value in values if value != default)


def switched_on(subject: ComponentUnderTest) -> Iterator[tuple[str, ComponentUnderTest]]:
    """A component as it is; and, for each number that is 0 and so switches something off, a decay of weights say, with
    a tenth in its place."""
    yield "", subject
    for option in subject.options():
        name, value = option.name, option.default
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0:
            try:
                yield f", with `{name}` {SWITCHED_ON}", subject.with_options({name: SWITCHED_ON})
            except UserError:  # no number that it takes
                continue


def _named_choices(subject: ComponentUnderTest, name: str) -> list[str]:
    try:
        subject.with_options({name: NO_CHOICE})
    except UserError as error:
        named = re.search(rf"`{name}` must be one of (.+?), but is '{NO_CHOICE}'", str(error))
        return [each for each in named[1].split(", ") if each != "…"] if named else []
    return []


class AtAllSites(ComponentUnderTest):
    """A component wherever it may stand at once, in models of two sizes and, of attention, under encodings of every
    hook: what depends on an option does not depend on the site, nor on how many sentences there are."""

    @cached_property
    def scenes(self) -> list[Scene]:
        """All but the one of a single sentence."""
        return [scene for scene in super().scenes if scene.size != ONE_SENTENCE]


def each_option(subject: ComponentUnderTest, observe: Observe) -> Result:
    """What is worth knowing of the options of a component: those whose other values change nothing, bit for bit. Where
    no line of its source reads such an option either, that is a failure: rare input cannot explain it.

    Args:
        observe: the component with these options too -> all that is looked at, in one order whatever they are; raises
            UserError where they are refused.
    """
    usual, acting, idle = observe({}), [], []
    tries: dict[str, str] = {}
    for option in subject.options():
        name = option.name
        tried: list[object] = []
        for value in _candidates(option):
            usual, again = itertools.tee(usual)
            acts = _differ(again, observe({name: value}))
            if acts is None:
                continue
            tried.append(value)
            if acts:
                acting.append(f"`{name}`")
                break
        else:
            if tried:
                idle.append(name)
                tries[name] = f"`{name}` ({' or '.join(map(str, tried))} instead of {option.default})"
    if never := [tries[name] for name in idle if name in unread(subject.cls)]:
        return Failed(f"{some(never)} changes nothing, and no line of the class reads it")
    if idle:
        return Note(
            f"{some(tries.values())} changed no number that was looked at: is it read? It may be where it acts on "
            "rarer input, later in training, or beside another option than was tried"
        )
    return Note(f"changed by {some(acting)}") if acting else Skip("it has no option that is a number or a choice")


def _candidates(option: Option) -> list[object]:
    """Of a whole number an even one more, as some must be, and small ones."""
    values = other_values(option)
    if isinstance(option.default, int) and not isinstance(option.default, bool):
        values += [2 * option.default, *SMALL]
    return [value for value in dict.fromkeys(values) if value != option.default]


def _differ(usual: Iterator[np.ndarray], others: Iterator[np.ndarray]) -> bool | None:
    """Whether a number is another one; None where the options are refused. An error is another result too: whether it
    is one is for other checks."""
    try:
        return any(
            one is None or other is None or not _same(one, other) for one, other in itertools.zip_longest(usual, others)
        )
    except UserError:
        return None
    except Exception:
        return True


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


# --------------------------------------------------------------------- what no line of a class reads, by its source


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
