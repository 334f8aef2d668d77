"""Loading a recipe: its file, read with its base, and the overrides of the command line. Several values of a setting,
`model.norm=layer,rms`, are a variant each, two lists their product."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.recipe import limits, yaml_lines
from paddle_tfm.recipe.expansion import Recipe, RunSpec, label
from paddle_tfm.recipe.merging import is_replaced, leaves, origins_below, override
from paddle_tfm.recipe.reading import find, is_file, read
from paddle_tfm.recipe.sections.fast import FAST, hastened
from paddle_tfm.recipe.settings import OF_THE_RECIPE

BASELINE = "baseline"
# settings that are no variant's; `seeds=1,2` would else be a grid of seeds
OF_NO_VARIANT = (*OF_THE_RECIPE, "summary", "duration", "requires")


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
                raise UserError(_("{key} has two lists of values; write one").format(key=key))
            axes[key] = items
        elif key != BASELINE:
            _set(recipe, key, items[0])
    _expand(recipe, axes)
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
        text = _("{path}: a run has one variant and one seed, but this recipe is of {number:,} runs")
        raise UserError(text.format(path=path, number=len(runs)))
    return runs[0]


def _setting(text: str) -> tuple[str, list[object]]:
    """The path and the values of an override."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not all(key.split(".")):
        raise UserError(_("override '{text}' must look like a.b=value, for instance train.steps=500").format(text=text))
    if key.count(".") > limits.DEPTH:
        sentence = _("override '{text}…': nested more than {depth} deep")
        raise UserError(sentence.format(text=text[:60], depth=limits.DEPTH))
    return key, _values(key, value)


def _set(recipe: Recipe, key: str, value: object) -> None:
    override(recipe.data, key, value, recipe.origins, {key: (yaml_lines.COMMAND_LINE, 0)})
    recipe.overridden += leaves({key: value})


# -------------------------------------------------------------------------------------- several values of a setting


def _values(path: str, text: str) -> list[object]:
    """The values of the override `path=text`: one, or those that commas divide.

    Raises:
        UserError: one is empty or there twice, is no YAML, or `path` is no setting of a variant.
    """
    items = yaml_lines.values(text)
    if items == [text] and re.search(r",\s*,|,$", text):
        said = _("override '{path}={text}': nothing stands before or behind one of its commas")
        raise UserError(said.format(path=path, text=text))
    if len(items) > 1 and path.split(".")[0] in OF_NO_VARIANT:
        said = _(
            "override '{path}={text}': '{key}' belongs to the recipe and takes one value; a list is written in "
            "brackets, {path}=[{text}], and a text with commas in quotes"
        )
        raise UserError(said.format(path=path, text=text, key=path.split(".")[0]))
    if twice := [item for item in items if items.count(item) > 1]:
        sentence = _("'{value}' is there twice, and would be compared with itself").format(
            value=yaml_lines.recipe_text(twice[0])
        )
        raise UserError(_("override '{path}={text}': {sentence}").format(path=path, text=text, sentence=sentence))
    return items


def _expand(recipe: Recipe, axes: Mapping[str, Sequence[object]]) -> None:
    """Give `recipe` a variant for each combination of values, dotted path → values. Its grid gets them as axes; one of
    an axis that it has takes that one's place. Each of its variants becomes as many as there are combinations.

    The baseline is the one that it was, with the first value of each list; none where the grid lost an axis.

    Raises:
        UserError: two paths are of one setting, what is set beside them would change nothing, or it has `ablate`.
    """
    if not axes:
        return
    _require_apart(recipe, axes)
    if recipe.data.get("ablate"):
        text = _("{key}= with several values makes a grid, but the recipe has `ablate`; give one")
        raise UserError(text.format(key=next(iter(axes))))
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
            text = _("{one}= and {other}= are two lists of values of one setting; write `variants` in a recipe")
            raise UserError(text.format(one=one, other=other))
    for path in axes:
        if beside := [each for each in recipe.overridden if is_replaced(each, path)]:
            text = _("override '{override}' changes nothing beside several values of {path}; keep one")
            raise UserError(text.format(override=beside[0], path=path))


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
            if any(is_replaced(leaf, path) for leaf in leaves(overrides)):
                text = _(
                    "variant '{name}' sets {path} itself, so {path}= with several values would undo it; leave it "
                    "out, or write a recipe with other variants"
                )
                raise UserError(text.format(name=name, path=path))
        for combination in itertools.product(*axes.values()):
            product = "-".join([str(name), *map(label, combination)])
            if product in products:
                text = _("two variants would be called '{product}'; write `variants` with names of their own")
                raise UserError(text.format(product=product))
            products[product] = {**overrides, **dict(zip(axes, combination))}
            for path, line in origins_below(recipe.origins, f"variants.{name}", overrides).items():
                recipe.origins[f"variants.{product}.{path}"] = line
            recipe.origins.update({f"variants.{product}.{path}": (yaml_lines.COMMAND_LINE, 0) for path in axes})
    recipe.data["variants"] = products
