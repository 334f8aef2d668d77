"""Which of the recipes that ship name a component, and in which variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache

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
    variants_of: dict[str, list[str]] = {}
    for recipe in sorted(shipped(), key=lambda recipe: ("/" in recipe, recipe)):
        loaded = _loaded(recipe)
        for variant, (overrides, lines) in loaded.written_variants().items() if recipe != BASE else ():
            data, origins = deepcopy(loaded.data), dict(loaded.origins)
            for path, value in overrides.items():
                override(data, path, value, origins, lines)
            own = {path for path, (file, _) in origins.items() if file != f"{BASE}.yaml"}
            # the text first: looking at what a component's options may hold takes a hundred times as long
            specs = ((each, spec) for each, path, spec in component_specs(data) if path in own and name in str(spec))
            if any((kind, name) in _named(each, spec, registry) for each, spec in specs):
                variants_of.setdefault(recipe, []).append(variant)
    return variants_of


@cache
def _loaded(recipe: str) -> Recipe:
    """A recipe that ships, read once: each is asked for every component that it may name."""
    return loading.load(recipe)


def default(kind: str) -> str:
    """The component of this kind that base.yaml names; "" for none, or several."""
    names = {str(spec) for kind_here, _, spec in component_specs(_loaded(BASE).data) if kind_here == kind}
    return names.pop() if len(names) == 1 else ""


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
