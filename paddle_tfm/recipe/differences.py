"""In which settings one resolved recipe differs from another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paddle_tfm.recipe.yaml_lines import join

DESCRIPTIVE = ("name", "summary", "duration", "variant", "seeds", "baseline")  # keys that change no number
ABSENT = object()


class Difference(NamedTuple):
    """A dotted path, and what either recipe says there; `ABSENT` where it says nothing."""

    path: str
    one: object
    other: object


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """All settings in which `other` differs from `one`, in the order of `one`. A component is compared whole; sections
    and sites key by key, where both are divided in the same way."""
    return list(_differences(_settings(one), _settings(other), ""))


def _settings(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in recipe.items() if key not in DESCRIPTIVE}


def _differences(one: Mapping[str, Any], other: Mapping[str, Any], path: str) -> Iterator[Difference]:
    for key in dict.fromkeys([*one, *other]):
        a, b, inner = one.get(key, ABSENT), other.get(key, ABSENT), join(path, key)
        if a == b:
            continue
        if isinstance(a, Mapping) and isinstance(b, Mapping) and "name" not in a and "name" not in b:
            yield from _differences(a, b, inner)
        else:
            yield Difference(inner, a, b)
