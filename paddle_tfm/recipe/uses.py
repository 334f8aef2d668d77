"""Which of the recipes that ship name a component, and in which variants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path

from paddle_tfm.components import Spec
from paddle_tfm.errors import UserError
from paddle_tfm.options import component_kind
from paddle_tfm.recipe import loading
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.merging import override
from paddle_tfm.recipe.reading import shipped
from paddle_tfm.recipe.sites import component_specs
from paddle_tfm.registry import Registry

BASE = "base"  # the recipe that holds every default


def uses(kind: str, name: str, registry: Registry) -> dict[str, list[str]]:
    """recipe → its variants that have the component, also within another one. Of the shipped recipes those that name it
    themselves, those in folders last: what comes from base.yaml is nearly everywhere."""
    variants_of = {}
    for recipe, file in sorted(shipped().items(), key=lambda item: ("/" in item[0], item[0])):
        if recipe == BASE or not re.search(rf"\b{re.escape(name)}\b", _text(file)):
            continue
        loaded = _loaded(recipe)
        variants = []
        for variant, (overrides, origins) in loaded.written_variants().items():
            data = deepcopy({key: value for key, value in loaded.data.items() if key not in ("variants", "grid")})
            for path, value in overrides.items():
                override(data, path, value, {}, origins)
            # the text first: looking at what a component's options may hold takes a hundred times as long
            specs = ((kind_here, spec) for kind_here, _, spec in component_specs(data) if name in str(spec))
            if any((kind, name) in _named(kind_here, spec, registry) for kind_here, spec in specs):
                variants.append(variant)
        if variants:
            variants_of[recipe] = variants
    return variants_of


@cache
def _loaded(recipe: str) -> Recipe:
    """A recipe that ships, read once: each is asked for every component that it may name."""
    return loading.load(recipe)


def default(kind: str) -> str:
    """The component of this kind that base.yaml names; "" for none, or several."""
    names = {str(spec) for kind_here, _, spec in component_specs(_loaded(BASE).data) if kind_here == kind}
    return names.pop() if len(names) == 1 else ""


def _text(file: Path) -> str:
    """A recipe's text, after that of its bases but base.yaml."""
    text = file.read_text("utf-8")
    base = re.search(r"^base: *([\w./-]+?)(\.yaml)? *(#.*)?$", text, re.MULTILINE)
    recipes = shipped()
    if base is None or base[1] == BASE:
        return text
    beside = file.parent / f"{base[1]}.yaml"
    above = beside if beside.is_file() else recipes.get(base[1])
    return text if above is None else _text(above) + text


def _named(kind: str, value: object, registry: Registry) -> Iterator[tuple[str, str]]:
    """(kind, name) of a component, and of those in its options."""
    try:
        spec = Spec.parse(value)
        options = registry.options(kind, spec.name) if spec.options else {}
    except (ValueError, UserError):
        return
    yield kind, spec.name
    for key, setting in spec.options.items():
        if key in options and (inner := component_kind(options[key].annotation)):
            for item in setting if isinstance(setting, list) else [setting]:
                if isinstance(item, (str, Mapping)):
                    yield from _named(inner[0], item, registry)
