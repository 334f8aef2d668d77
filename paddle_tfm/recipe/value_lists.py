"""Several values of a setting on the command line, `model.norm=layer,rms`: each is a variant, two lists a product."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from paddle_tfm.errors import UserError
from paddle_tfm.recipe import limits, yaml_lines
from paddle_tfm.recipe.expansion import Recipe, label
from paddle_tfm.recipe.merging import is_replaced, leaves, origins_below
from paddle_tfm.recipe.settings import OF_THE_RECIPE

# settings that are no variant's; `seeds=1,2` would else be a grid of seeds
OF_NO_VARIANT = (*OF_THE_RECIPE, "summary", "duration", "requires")


def values(path: str, text: str) -> list[object]:
    """The values of the override `path=text`: one, or those that commas divide.

    Raises:
        UserError: one is empty or there twice, is no YAML, or `path` is no setting of a variant.
    """
    parts = yaml_lines.split(text)
    if len(parts) == 1:
        return [yaml_lines.value(text)]
    if path.split(".")[0] in OF_NO_VARIANT:
        raise UserError(
            f"override '{path}={text}': '{path.split('.')[0]}' belongs to the recipe and takes one value; a list is "
            f"written in brackets, {path}=[{text}], and a text with commas in quotes"
        )
    limits.require_variants(f"override '{path}={text[:60]}…'", [parts])
    if "" in parts:
        raise UserError(f"override '{path}={text}': nothing stands before or behind one of its commas")
    items = [yaml_lines.value(part) for part in parts]
    if twice := [part for part, item in zip(parts, items) if items.count(item) > 1]:
        raise UserError(f"override '{path}={text}': '{twice[0]}' is there twice, and would be compared with itself")
    return items


def expand(recipe: Recipe, axes: Mapping[str, Sequence[object]]) -> None:
    """Give `recipe` a variant for each combination of values, dotted path → values. Its grid gets them as axes; one of
    an axis that it has takes that one's place. Each of its variants becomes as many as there are combinations.

    The baseline is the one that it was, with the first value of each list; none where the grid lost an axis.

    Raises:
        UserError: two paths are of one setting, or what is set beside them would change nothing.
    """
    if not axes:
        return
    _require_apart(recipe, axes)
    recipe.axes = list(axes)
    for key in ("duration", "fast", "claims"):
        recipe.data.pop(key, None)  # they are of the recipe's own variants
    baseline = recipe.data.pop("baseline", None)
    grid, variants = recipe.data.get("grid"), recipe.data.get("variants")
    if isinstance(variants, Mapping) and variants:
        keeps_baseline = True
        _multiply(recipe, variants, axes)
    else:
        old = grid if isinstance(grid, Mapping) else {}
        keeps_baseline = bool(old) and not set(axes) & set(old)
        recipe.data["grid"] = {**old, **{path: list(items) for path, items in axes.items()}}
        recipe.origins.update({f"grid.{path}": (yaml_lines.COMMAND_LINE, 0) for path in axes})
    if baseline is not None and keeps_baseline:
        recipe.data["baseline"] = "-".join([str(baseline), *(label(items[0]) for items in axes.values())])


def _require_apart(recipe: Recipe, axes: Mapping[str, Sequence[object]]) -> None:
    """Raises UserError where two lists are of one setting, or an override of one value would change nothing."""
    for one, other in itertools.combinations(axes, 2):
        if f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}."):
            raise UserError(f"{one}= and {other}= are two lists of values of one setting; write `variants` in a recipe")
    for path in axes:
        if beside := [each for each in recipe.overridden if is_replaced(each, path)]:
            raise UserError(f"override '{beside[0]}' changes nothing beside several values of {path}; keep one")


def _multiply(recipe: Recipe, variants: Mapping, axes: Mapping[str, Sequence[object]]) -> None:
    """Each variant with each combination of values.

    Raises:
        UserError: a variant sets one of the paths itself, or two get one name.
    """
    limits.require_variants(recipe.source, [variants, *axes.values()])
    products: dict[str, dict] = {}
    for name, said in variants.items():
        overrides = dict(said) if isinstance(said, Mapping) else {}
        for path in axes:
            if any(is_replaced(leaf, path) for key, value in overrides.items() for leaf in leaves(key, value)):
                raise UserError(
                    f"variant '{name}' sets {path} itself, so {path}= with several values would undo it; leave it out, "
                    "or write a recipe with other variants"
                )
        for combination in itertools.product(*axes.values()):
            product = "-".join([str(name), *map(label, combination)])
            if product in products:
                raise UserError(f"two variants would be called '{product}'; write `variants` with names of their own")
            products[product] = {**overrides, **dict(zip(axes, combination))}
            for path, line in origins_below(recipe.origins, f"variants.{name}", overrides).items():
                recipe.origins[f"variants.{product}.{path}"] = line
            recipe.origins.update({f"variants.{product}.{path}": (yaml_lines.COMMAND_LINE, 0) for path in axes})
    recipe.data["variants"] = products
