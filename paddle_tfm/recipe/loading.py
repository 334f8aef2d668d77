"""Loading a recipe: its file, read with its base, and the overrides of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.recipe import limits, value_lists, yaml_lines
from paddle_tfm.recipe.expansion import Recipe, RunSpec
from paddle_tfm.recipe.fast import FAST, hastened
from paddle_tfm.recipe.merging import leaves, override
from paddle_tfm.recipe.reading import find, is_file, read

BASELINE = "baseline"


def load(name: str, overrides: Iterable[str] = (), fast: bool = False) -> Recipe:
    """A recipe with its base merged in and ``a.b=value`` overrides applied, after its smaller budget where `fast`;
    ``a.b=value,value`` gives it a variant for each value.

    Raises:
        UserError: no such recipe, not YAML, an override that is not of that form, or `fast` without a smaller budget.
    """
    path = find(name)
    data, origins = read(path)
    data = {"name": data.pop("name", re.sub(r"[^\w.-]+", "-", path.stem)), **data}  # first, as people write it
    source = str(name) if path.name == str(name) or is_file(Path(name)) else path.name
    overrides = list(overrides)
    settings = [_setting(text) for text in overrides]
    recipe = Recipe(source, data, origins, arguments=[str(name), *overrides, *([FAST] if fast else [])])
    if fast:
        recipe = hastened(recipe)
    axes: dict[str, list[object]] = {}
    for key, items in settings:
        if len(items) > 1:
            if key in axes:
                raise UserError(f"{key} has two lists of values; write one")
            axes[key] = items
        elif key != BASELINE:
            _set(recipe, key, items[0])
    value_lists.expand(recipe, axes)
    for key, items in settings:
        if key == BASELINE:  # one of the variants that the lists have made
            _set(recipe, key, items[0])
    return recipe


def load_single(path: Path) -> RunSpec:
    """The run that the recipe in a run's folder is of.

    Raises:
        UserError: it cannot be read, or is of several runs.
    """
    runs = load(str(path)).runs()
    if len(runs) != 1:
        raise UserError(f"{path}: a run has one variant and one seed, but this recipe is of {len(runs):,} runs")
    return runs[0]


def _setting(text: str) -> tuple[str, list[object]]:
    """The path and the values of an override."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not all(key.split(".")):
        raise UserError(f"override '{text}' must look like a.b=value, for instance train.steps=500")
    limits.require_path(f"override '{text[:60]}…'", 0, key)
    return key, value_lists.values(key, value)


def _set(recipe: Recipe, key: str, value: object) -> None:
    override(recipe.data, key, value, recipe.origins, {key: (yaml_lines.COMMAND_LINE, 0)})
    recipe.overridden += leaves(key, value)
