"""What holds for a task by itself: the examples of its splits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest

from paddle_tfm.protocols import SPLITS, Example, Task
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.other_process import as_in_another_process
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result

MOST = 100_000  # examples of a split that are looked at
COMPARED = 5_000  # examples that are drawn again and compared: many more than a stream that differs has alike
MOST_ALIKE = 5  # examples that may all be one
FIRST = 200  # examples that the order of sets is looked for in
ABANDONED = 3  # examples after which a reader leaves


def split(task: Task, name: str) -> Iterator[Example]:
    """The first examples of a split, at most `MOST`."""
    return islice(task.examples(name), MOST)


def _shown(example: object) -> str:
    return (
        "no example"
        if example is None
        else f"{str(tuple(example))[:80]}"
        if isinstance(example, tuple)
        else repr(example)
    )


def _differs(one: Iterator[Example], other: Iterator[Example], what: str) -> Failed | None:
    for number, (a, b) in enumerate(zip_longest(one, other)):
        if a != b or type(a) is not type(b):
            return Failed(f"{what}: example {number} is {_shown(a)}, and then {_shown(b)}")
    return None


@check(
    "task",
    invariant="a split holds the same examples at every call, in the same order, in every process",
    consequence="validation scores of two steps, or of two variants, are of different data; a resumed run trains on "
    "others",
    hint="`paddle_tfm.randomness.generator(key, split)` in `examples`, made at each call; a generator kept in the "
    "object, `random`, `hash` of a text (other in each process), the order of a set (`sorted`)",
)
def same_examples(subject: ComponentUnderTest) -> Result:
    task = subject.build()
    for name in SPLITS:
        list(islice(task.examples(name), ABANDONED))  # a reader that leaves changes nothing for the next
        one, other = (islice(task.examples(name), COMPARED) for _ in range(2))
        if failed := _differs(one, other, f"{name}, read twice side by side"):
            return failed
    for name in reversed(SPLITS):
        with as_in_another_process():
            elsewhere = list(islice(subject.build().examples(name), COMPARED))
        here = islice(task.examples(name), COMPARED)
        if failed := _differs(here, iter(elsewhere), f"{name}, read by another process"):
            return failed
    if (other_order := subject.in_another_order()) is not None:
        for name in SPLITS:
            seen = f"{name}, with sets in the order of another process"
            first, other_first = (islice(each.examples(name), FIRST) for each in (task, other_order))
            if failed := _differs(first, other_first, seen):
                return failed
    return Passed()


@check(
    "task",
    invariant="no source of one split is in another",
    consequence="the test measures memorized sentences",
    hint="a hash of the source decides its split (`paddle_tfm.randomness.digest`), before anything is written in "
    "several ways; draws of one small set for all splits",
)
def splits_disjoint(subject: ComponentUnderTest) -> Result:
    task = subject.build()
    seen: dict[str, str] = {}
    for name in SPLITS:
        for text in {" ".join((example.source or example.target).split()) for example in split(task, name)}:
            if text in seen:
                return Failed(f"{text[:80]!r} is in {seen[text]} and in {name}")
            seen[text] = name
    return Passed()


@check(
    "task",
    invariant="an example is a pair of texts, none of its sides empty; train and valid have several examples",
    consequence="empty sentences reach the model and make the loss NaN; or the model learns a single sentence",
    hint="lines without a text; `Example(source, target)`; a source that is empty in some examples only; "
    "a generator that is made for each example",
)
def examples(subject: ComponentUnderTest) -> Result:
    task = subject.build()
    counts: dict[str, int] = {}
    empty: set[bool] = set()
    for name in SPLITS:
        counts[name], first, alike = 0, None, True
        for number, example in enumerate(split(task, name)):
            first = example if first is None else first
            alike = alike and example == first
            counts[name] += 1
            if not isinstance(example, Example):
                return Failed(f"{name}: example {number} must be an `Example`, but is {type(example).__name__}")
            if not isinstance(example.source, str) or not isinstance(example.target, str):
                return Failed(f"{name}: example {number} must hold two texts, but is {_shown(example)}")
            empty.add(not example.source.strip())
            if not example.target.strip():
                return Failed(f"{name}: the target of example {number} is empty: {_shown(example)}")
            if len(empty) > 1:
                return Failed(f"{name}: the source of example {number} is {example.source[:80]!r}, others are "
                              f"{'texts' if empty == {True} or not example.source.strip() else 'empty'}")  # fmt: skip
        if not counts[name] and name != "test":
            return Failed(f"{name} has no example")
        if alike and counts[name] > MOST_ALIKE:
            return Failed(f"{name}: all {counts[name]:,} examples are {_shown(first)}")
    return Note(", ".join(f"{name} {count:,}{'+' if count == MOST else ''}" for name, count in counts.items()))
