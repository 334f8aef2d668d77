"""The sizes at which every variant is trained: a ladder, each rung a name and settings, from small to large.

ladder:
  sizes:
    s: {model.d_model: 32, model.d_ff: 128}
    m: {model.d_model: 64, model.d_ff: 256}

A variant `rms` is then trained as `rms@s` and `rms@m`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import field_validator

from paddle_tfm.errors import Problem
from paddle_tfm.language import _
from paddle_tfm.recipe.merging import is_replaced, leaf_values, leaves, origins_below
from paddle_tfm.recipe.sections import Section
from paddle_tfm.recipe.yaml_lines import Origins

EXAMPLE = "`ladder: {sizes: {s: {model.d_model: 32}, m: {model.d_model: 64}}}`"
Overrides = Mapping[str, tuple[dict, Origins]]  # name → what is set at which path, and where that was written


class LadderSettings(Section):
    """The `ladder:` section.

    Args:
        sizes: name → settings, each larger than the one before: what it costs to train is compared before it is trained
            (`model.size`).
    """

    where_a_key_is_missing: ClassVar[str] = f"as in {EXAMPLE}"

    sizes: dict[str, dict[str, Any]]

    @field_validator("sizes")
    @classmethod
    def _several(cls, sizes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if len(sizes) < 2:
            number = _("there is one, '{name}'").format(name=next(iter(sizes))) if sizes else _("there is none")
            text = _("must be two or more, or there is no slope, but {number}; as in {example}")
            raise ValueError(text.format(number=number, example=EXAMPLE))
        for name in sizes:
            if not re.fullmatch(r"\w[\w.-]{0,29}", name):
                text = _("{name!r} must be at most 30 letters, digits, `_`, `.` and `-`")
                raise ValueError(text.format(name=name), f".{name}")
        return sizes


def sizes_of(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The sizes of a merged recipe; none without a ladder. What is of a wrong form is left out."""
    ladder = data.get("ladder")
    sizes = ladder.get("sizes") if isinstance(ladder, Mapping) else None
    sizes = sizes if isinstance(sizes, Mapping) else {}
    return {str(name): dict(settings) for name, settings in sizes.items() if isinstance(settings, Mapping)}


def at(variant: str, size: str | None) -> str:
    """What a variant is called at a size; without a size, as it is."""
    return variant if size is None else f"{variant}@{size}"


def without_size(variant: str, size: str | None) -> str:
    """What a recipe calls the variant that is trained under this name."""
    return variant if size is None else variant.removesuffix(f"@{size}")


def at_sizes(variants: Overrides, data: Mapping[str, Any], origins: Origins) -> dict[str, tuple[dict, Origins]]:
    """Each variant at each size, the smallest first: the settings of the size, and then its own."""
    sizes = sizes_of(data)
    if not sizes:
        return dict(variants)
    trained = {}
    for size, settings in sizes.items():
        lines = origins_below(origins, f"ladder.sizes.{size}", settings)
        for name, (overrides, own_lines) in variants.items():
            # As leaves: what the two set of one section stands side by side.
            set_here = (leaf for each in (*settings.items(), *overrides.items()) for leaf in leaf_values(*each))
            both = {"size": size, **dict(set_here)}
            trained[at(name, size)] = (both, {**lines, **own_lines})
    return trained


def problems(variants: Overrides, data: Mapping[str, Any]) -> Iterator[Problem]:
    """What of a ladder does not fit to the rest of the recipe."""
    sizes = sizes_of(data)
    if not sizes:
        return
    if len(variants) == 1:
        sentence = _("compares variants at several sizes, but there is one variant; add `variants`, or leave it out")
        yield Problem("ladder", sentence)
    if isinstance(data.get("seeds"), Mapping):
        sentence = _("are added until variants are told apart at one size; a `ladder` needs a list, `[1, 2, 3]`")
        yield Problem("seeds", sentence)
    for name, (overrides, _places) in variants.items():
        own = leaves(overrides)
        for size, settings in sizes.items():
            for path in leaves(settings):
                if any(is_replaced(path, leaf) for leaf in own):
                    sentence = _("variant '{name}' sets {path} itself, so it would be the same at every size").format(
                        name=name, path=path
                    )
                    yield Problem(f"ladder.sizes.{size}.{path}", sentence)
