"""Reading a recipe: find its file, merge it with its base, apply overrides. A recipe is data and never code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.recipe import value_lists, yaml_lines
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.fast import FAST, hastened
from paddle_tfm.recipe.merging import leaves, override
from paddle_tfm.recipe.yaml_lines import Origins

BASELINE = "baseline"


def shipped() -> dict[str, Path]:
    """The recipes that come with paddle_tfm: name, with its folder where it has one → file."""
    folder = Path(str(resources.files("paddle_tfm_recipes")))
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in folder.rglob("*.yaml")}


def find(name: str) -> Path:
    """The file of a recipe: a path, or the name of a shipped one.

    Raises:
        UserError: neither exists; the nearest shipped name is given.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = shipped()
    if name in known:
        return known[name]
    if path.suffix in (".yaml", ".yml"):
        raise UserError(f"{name}: no such file; shipped recipes: {', '.join(sorted(known))}")
    raise UserError(unknown("recipe", name, known))


def load(name: str, overrides: Iterable[str] = (), fast: bool = False) -> Recipe:
    """A recipe with its base merged in and ``a.b=value`` overrides applied, after its smaller budget where `fast`;
    ``a.b=value,value`` gives it a variant for each value.

    Raises:
        UserError: no such recipe, not YAML, an override that is not of that form, or `fast` without a smaller budget.
    """
    path = find(name)
    data, origins = _with_base(path, [])
    data = {"name": data.pop("name", re.sub(r"[^\w.-]+", "-", path.stem)), **data}  # first, as people write it
    source = str(name) if path.name == str(name) or Path(name).is_file() else path.name
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


def _setting(text: str) -> tuple[str, list[object]]:
    """The path and the values of an override."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not all(key.split(".")):
        raise UserError(f"override '{text}' must look like a.b=value, for instance train.steps=500")
    return key, value_lists.values(key, value)


def _set(recipe: Recipe, key: str, value: object) -> None:
    override(recipe.data, key, value, recipe.origins, {key: (yaml_lines.COMMAND_LINE, 0)})
    recipe.overridden += leaves(key, value)


def _with_base(path: Path, chain: list[Path]) -> tuple[dict, Origins]:
    if path.resolve() in chain:
        raise UserError(f"{path}: its `base` leads back to itself")
    data, origins = yaml_lines.load_file(path, path.name if path in shipped().values() else str(path))
    base = data.pop("base", None)
    if base is None:
        return data, origins
    beside, name = path.parent / str(base), Path(str(base)).stem
    if not beside.is_file() and name not in shipped():
        raise UserError(f"{path} line {origins['base'][1]}: base '{base}' is no file beside it and no shipped recipe")
    merged, merged_origins = _with_base(beside if beside.is_file() else shipped()[name], [*chain, path.resolve()])
    of_its_runs = ("baseline", "variants", "grid", "smallest_effect", "fast", "claims", "ladder", "tune", "equal")
    for key in ("name", "duration", *of_its_runs):
        merged.pop(key, None)  # they describe the base's own runs
    for key, value in data.items():
        override(merged, key, value, merged_origins, origins)
    merged_origins[""] = origins.get("", (str(path), 0))
    return merged, merged_origins
