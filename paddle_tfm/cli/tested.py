"""What `paddle-tfm evaluate` scores: a split, a further test of the recipe, or one of the command line."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from paddle_tfm.recipe.plan import Plan
    from paddle_tfm.registry import Registry
    from paddle_tfm.train.run import Run

CHANGED = "changed"  # what predictions of a test of the command line are called by
AT_LEAST_ONE = click.IntRange(min=1)


def test_options(command: Callable) -> Callable:
    """--test, --task, --max-length, --batch and --padding."""
    changed = "; and says what that changed."
    options = [
        click.option("--test", metavar="NAME", help="A further test of the recipe (evaluate.tests)."),
        click.option("--task", metavar="{…}", help="Other texts: options of the task, {test_min_length: 13}."),
        click.option(
            "--max-length",
            type=click.IntRange(min=2),
            metavar="N",
            help="Instead of model.max_length, where every encoding of the model knows positions beyond that.",
        ),
        click.option("--batch", type=AT_LEAST_ONE, metavar="N", help=f"At most so many sentences a batch{changed}"),
        click.option("--padding", type=AT_LEAST_ONE, metavar="N", help=f"So many columns of padding more{changed}"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Tested:
    """`split`: the texts as a corpus calls them. `label`: the test's name, "" for a split as it is. `conditions`: of
    batches, those of `train.evaluate.likelihood`; empty where they are as usual. `max_length`: instead of the
    model's."""

    plan: Plan
    split: str
    label: str
    conditions: dict[str, Any]
    max_length: int | None = None


def tested(run: Run, registry: Registry, split: str | None, name: str | None, **options: Any) -> Tested:
    """What the options ask for; `options` are task, max_length, batch and padding, None where
    not given.

    Raises:
        UserError: there is no such test, or an option does not fit.
    """
    from paddle_tfm.errors import UserError
    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.recipe.further_tests import unknown_test
    from paddle_tfm.train.final_tests import conditions_of

    changes = {key: value for key, value in options.items() if value is not None}
    if "task" in changes:
        changes["task"] = yaml_lines.value(changes["task"])
    if name is None and not changes:
        return Tested(run.plan, split or "test", "", {})
    if name is not None and split is not None:
        raise UserError(f"--test {name} says which split it is of; leave --split out")
    if name is not None and (sentence := unknown_test(name, run.settings.evaluate.tests)):
        raise UserError(f"--test: {sentence}")
    label = name or CHANGED
    before = run.recipe["evaluate"]["tests"][name] if name else {"split": split or "test"}
    plan = _with_test(run, registry, label, {**before, **changes})
    test = plan.settings.evaluate.tests[label]
    return Tested(plan, test.texts(label), label, conditions_of(test) if test.is_conditioned else {}, test.max_length)


def _with_test(run: Run, registry: Registry, name: str, test: dict[str, Any]) -> Plan:
    """The run's plan, with a further test in place of what had its name."""
    from paddle_tfm.errors import RecipeError
    from paddle_tfm.recipe.plan import plan_run
    from paddle_tfm.recipe.validation import validate

    data = deepcopy(run.recipe)
    data["evaluate"]["tests"] = {**data["evaluate"].get("tests", {}), name: test}
    settings, wrong = validate(data, {})
    source = str(run.folder / "recipe.yaml")
    if settings is None:
        raise RecipeError(source, wrong)
    return plan_run(replace(run.plan.run, data=data, settings=settings), registry).require_sound(source)
