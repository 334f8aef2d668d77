"""Recipes of tests: the overrides of a tiny model; a text in a file, loaded as the command line loads it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from paddle_tfm.errors import RecipeError
from paddle_tfm.recipe import loading
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.check import check

TINY_MODEL = [
    "model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1",
]  # fmt: skip


def load_text(folder: Path, text: str, overrides: Sequence[str] = (), fast: bool = False) -> Recipe:
    """The recipe of this text, written to `folder`."""
    file = folder / "mine.yaml"
    file.write_text(text, "utf-8")
    return loading.load(str(file), overrides, fast)


def problems_of(recipe: Recipe, registry: Registry) -> list[tuple[int | None, str, str]]:
    """(line, path, sentence) of all that is wrong with it, found before anything is trained."""
    with pytest.raises(RecipeError) as error:
        check(recipe, registry)
    return [(problem.line, problem.path, problem.message) for problem in error.value.problems]
