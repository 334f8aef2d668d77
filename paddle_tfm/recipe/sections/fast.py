"""`fast:`, a smaller budget that a recipe states beside its own: values at dotted paths, which `--fast` sets.

    fast: {train.steps: 100, seeds: [1, 2, 3]}

It shows in minutes that everything runs and what comes out. It is no verdict on what the recipe claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

from paddle_tfm.errors import Problem, UserError
from paddle_tfm.language import _
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.merging import is_replaced, leaves, override
from paddle_tfm.recipe.sections.ladder import sizes_of
from paddle_tfm.recipe.settings import OF_THE_RECIPE
from paddle_tfm.recipe.validation import locate, validate

FAST = "--fast"


def hastened(recipe: Recipe) -> Recipe:
    """The recipe with its smaller budget, called NAME-fast.

    Raises:
        UserError: it states none.
    """
    if not recipe.data.get("fast") or not isinstance(recipe.data["fast"], dict):
        text = _(
            "{source} states no smaller budget for {option}; add one, for instance `fast: {{train.steps: 100, seeds: "
            "[1]}}`"
        )
        raise UserError(text.format(source=recipe.source, option=FAST))
    data, origins = deepcopy(recipe.data), dict(recipe.origins)
    source = {path.removeprefix("fast."): line for path, line in origins.items() if path.startswith("fast.")}
    for path, value in data["fast"].items():
        override(data, path, value, origins, source)
    return replace(recipe, data={**data, "name": f"{recipe.name}-fast"}, origins=origins)


def problems(recipe: Recipe) -> Iterator[Problem]:
    """What is wrong with the smaller budget of a recipe that has one, and nothing else wrong in its structure."""
    fast = recipe.data.get("fast")
    if not fast or not isinstance(fast, dict):
        return
    for path in fast:
        if path.split(".")[0] in OF_THE_RECIPE and path.split(".")[0] not in ("seeds", "tune"):
            yield locate(Problem(f"fast.{path}", _("is no part of a budget")), recipe.origins)
    parts = {("variant", name): overrides for name, (overrides, _places) in recipe.written_variants().items()}
    parts |= {("size", name): settings for name, settings in sizes_of(recipe.data).items()}
    for (part, name), overrides in parts.items():
        for path in leaves(fast):
            if any(is_replaced(path, leaf) for leaf in leaves(overrides)):
                text = _("{part} '{name}' sets {leaf} itself, so this would change nothing there")
                sentence = text.format(part=_(part), name=name, leaf=path)
                yield locate(Problem(f"fast.{path}", sentence), recipe.origins)
    quick = hastened(recipe)
    yield from validate(quick.data, quick.origins)[1]
