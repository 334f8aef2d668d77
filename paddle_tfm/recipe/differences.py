"""In which settings one resolved recipe differs from another, and a recipe with the defaults of its components."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from paddle_tfm.components import Spec
from paddle_tfm.errors import UserError
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.sites import component_specs
from paddle_tfm.recipe.yaml_lines import join
from paddle_tfm.registry import Registry

DESCRIPTIVE = ("name", "summary", "duration", "variant", "size", "seeds", "baseline")  # keys that change no number


class Absent:
    """Of a setting that a recipe has not; as a word, `absent`."""

    def __str__(self) -> str:
        return "absent"

    def __deepcopy__(self, memo: dict) -> Absent:
        return self


ABSENT = Absent()


class Difference(NamedTuple):
    """A dotted path, and what either recipe says there; `ABSENT` where it says nothing."""

    path: str
    one: object
    other: object


def differences(
    one: Mapping[str, Any], other: Mapping[str, Any], without: Collection[str] = DESCRIPTIVE
) -> list[Difference]:
    """All settings in which `other` differs from `one`, in the order of `one`, but for the keys `without`. Sections and
    sites are compared key by key where both are divided in the same way, and a component with itself option by option;
    a component in place of another is one setting. `name` and `{name: name}` are the same."""
    before, after = ({key: value for key, value in recipe.items() if key not in without} for recipe in (one, other))
    return list(_differences(before, after, ""))


def _differences(one: Any, other: Any, path: str) -> Iterator[Difference]:
    one, other = (
        {"name": value} if _is_name(value, beside) else value for value, beside in ((one, other), (other, one))
    )
    if one == other:
        return
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.get("name") == other.get("name"):
        for key in dict.fromkeys([*one, *other]):
            yield from _differences(one.get(key, ABSENT), other.get(key, ABSENT), join(path, key))
        return
    yield Difference(path, *(value["name"] if _is_bare(value) else value for value in (one, other)))


def _is_name(value: object, beside: object) -> bool:
    """Whether a text is a component's name, as it stands beside a component with options."""
    return isinstance(value, str) and isinstance(beside, Mapping) and "name" in beside


def _is_bare(value: Any) -> bool:
    """Whether it is a component without options."""
    return isinstance(value, Mapping) and set(value) == {"name"}


# ------------------------------------------------------------------------------------------------------------ defaults


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
