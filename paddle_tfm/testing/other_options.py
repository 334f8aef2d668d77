"""A component at other values of its options: what each of them changes, and which choices there are."""

from __future__ import annotations

import itertools
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from paddle_tfm.errors import UserError
from paddle_tfm.options import Option
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.models.size import ONE_SENTENCE
from paddle_tfm.testing.results import Failed, Note, Result, Skip, some
from paddle_tfm.testing.unread import unread

SMALL = (1, 10)  # what counts steps acts early
SWITCHED_ON = 0.1
NO_CHOICE = "no-such-choice"
MOST_CHOICES = 8  # of an option, tried
EXTREMES = (0.01, 100.0)  # times a number's default: what acts on large numbers only acts on those of a small model too
SMALLEST, UNSET = (1, 2), (0.5, 2.0)  # of a whole number; of a number that is not set

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
