"""A resolved recipe with the defaults of its components: what they do where the recipe says nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from paddle_tfm.components import Spec
from paddle_tfm.errors import UserError
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.component_specs import component_specs
from paddle_tfm.registry import Registry


def with_defaults(data: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
    """`data` with each component as `{name, options…}` with all its options, in the order of its constructor. A
    component that is not known here stays as it is written."""
    whole = deepcopy(dict(data))
    for kind, path, value in list(component_specs(data)):
        try:
            spec = Spec.parse(value)
            options = registry.options(kind, spec.name)
        except (UserError, ValueError):
            continue
        defaults = {
            name: yaml_lines.value(yaml_lines.recipe_text(option.default))
            for name, option in options.items()
            if not option.required
        }
        _put(whole, path, {"name": spec.name, **defaults, **spec.options})
    return whole


def _put(data: Any, path: str, value: object) -> None:
    """Set what stands at a dotted path, in which `[0]` is an item of a list."""
    *parents, last = [int(key[1:-1]) if key[0] == "[" else key for key in re.findall(r"\[\d+\]|[^.\[]+", path)]
    for key in parents:
        data = data[key]
    data[last] = value
