"""Further tests of a finished run: the `evaluate.tests:` section.

evaluate:
  tests:
    beyond: {task: {test_min_length: 13, test_max_length: 14}}   # other texts
    far: {max_length: 40, task: {test_min_length: 30, test_max_length: 30}}  # beyond model.max_length
    alone: {batch: 1}                                            # the same texts, a sentence a batch
    padded: {padding: 20}                                        # the same texts, 20 columns of padding more
    own: {split: valid, task: {valid: my.tsv}, while_training: true}  # another validation set, with every evaluation

A metric of one is called `exact_match@beyond` wherever a metric is named. A checkpoint is chosen by one only where
`evaluate.best` names it, `exact_match@own`; never by one of the test split.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from paddle_tfm import units
from paddle_tfm.errors import unknown
from paddle_tfm.language import _
from paddle_tfm.protocols import SPLITS
from paddle_tfm.recipe.sections import Section


class FurtherTest(Section):
    """One further test: what is other than in the run's own.

    Args:
        split: of which texts it is. task: options of the run's task that are changed, for other texts; with `name`, a
            task by itself. Training, vocabularies and tokenizers stay those of the run.
        max_length: instead of model.max_length, where every encoding of the model knows positions beyond that.
        batch: at most so many sentences a batch. padding: columns of padding added to every source and target. A
            correct model does not notice these two, but for rounding.
        while_training: also scored with every evaluation, by `evaluate.examples` and `evaluate.search`.
    """

    split: Literal["train", "valid", "test"] = "test"
    task: str | dict | None = None
    max_length: int | None = Field(None, gt=1, le=1_000_000)
    batch: int | None = Field(None, gt=0)
    padding: int = Field(0, ge=0, le=100_000)
    while_training: bool = False

    @model_validator(mode="after")
    def _other(self) -> FurtherTest:
        if self == FurtherTest.model_construct(while_training=self.while_training):
            sentence = _("is the run's own test over again; set `task`, `split`, `batch`, `padding` or `max_length`")
            raise ValueError(sentence)
        return self

    @property
    def is_conditioned(self) -> bool:
        """Whether batches are other than usual."""
        return self.batch is not None or self.padding > 0

    @property
    def conditions(self) -> dict[str, Any]:
        """In what batches it is scored."""
        return {"max_rows": self.batch, "padding": self.padding}

    def texts(self, name: str) -> str:
        """What a corpus calls its texts: those of the run's own split, or `test@name`."""
        return self.split if self.task is None else self.label(name)

    def label(self, name: str) -> str:
        """What it is called beside the splits: `test@name`."""
        return f"{self.split}{units.AT}{name}"


def check_names(tests: Mapping[str, object]) -> None:
    """Refuse a name that cannot stand behind `@`.

    Raises:
        ValueError: (sentence, sub-path) of the first such name.
    """
    for name in tests:
        if not re.fullmatch(r"\w[\w-]{0,59}", name):
            raise ValueError(_("must be called by letters, digits, `_` and `-`, at most 60"), f".{name}")
        if name in SPLITS:
            raise ValueError(_("'{name}' is the name of a split; choose another").format(name=name), f".{name}")


def task_specs(data: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """(dotted path, task) of every test of a run's data that has texts of its own: the run's task with its changes.
    What is of a wrong form is left out."""
    evaluate = data.get("evaluate")
    tests = evaluate.get("tests") if isinstance(evaluate, Mapping) else None
    for name, test in tests.items() if isinstance(tests, Mapping) else ():
        changed = test.get("task") if isinstance(test, Mapping) else None
        if changed is not None:
            yield task_path(name), changed_task(data.get("task"), changed)


def task_path(name: str) -> str:
    """The dotted path of a test's task."""
    return f"evaluate.tests.{name}.task"


def changed_task(task: object, changed: object) -> object:
    """The run's task with changed options; what has a name is a task by itself."""
    if not isinstance(changed, Mapping) or "name" in changed:
        return changed
    return {**(task if isinstance(task, Mapping) else {"name": task}), **changed}


def texts_key(data: Mapping[str, Any]) -> str:
    """Equal for runs that are trained and tested on the same texts."""
    return str((data.get("task"), list(task_specs(data))))


def why_not_measured(metric: str, metrics: Collection[str], tests: Collection[str]) -> str:
    """A sentence where neither a metric nor a metric of a further test is called so; "" where one is."""
    name, test = units.metric_and_test(metric)
    if name not in metrics:
        return unknown("metric", name, metrics)
    return unknown_test(test, tests) if test else ""


def unknown_test(name: str, tests: Collection[str]) -> str:
    """A sentence where no further test has this name, else ""."""
    if not tests:
        return _("'{name}' is no further test: there are none; add it to `evaluate.tests`").format(name=name)
    return "" if name in tests else unknown("test", name, tests)
