"""`ablate:`, leave-one-out from a full model: the recipe itself, and a variant without each thing that is named.

    ablate: [model.position, {model.norm: none}, {train.clip_norm: null}]

In the place of what is taken away stands what is written behind its path, or else the default of `base.yaml`. The
variants are `full`, `without-position`, `without-norm` and `without-clip_norm`; `full` is the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from paddle_tfm.errors import Problem, nearest
from paddle_tfm.language import _
from paddle_tfm.recipe.merging import PLACES, leaf_values
from paddle_tfm.recipe.reading import read, shipped
from paddle_tfm.recipe.yaml_lines import recipe_text

FULL = "full"
MISSING = object()


class Removal(NamedTuple):
    """What is taken away: `was` stands at `path` in the full model, `now` in the variant; either may be `MISSING`.
    `place`: where that is written."""

    path: str
    was: object
    now: object
    place: str

    @property
    def what(self) -> str:
        """The path without its section: `norm`, `norm.encoder`."""
        return self.path.partition(".")[2] or self.path

    @property
    def variant(self) -> str:
        """What the model without it is called."""
        return f"without-{self.what}"

    @property
    def is_sound(self) -> bool:
        """Whether the full model has it, and the variant something else."""
        return MISSING not in (self.was, self.now) and self.was != self.now

    @property
    def words(self) -> str:
        """`norm: rms → layer`."""
        return f"{self.what}: {recipe_text(self.was)} → {recipe_text(self.now)}"


def removals(data: Mapping) -> list[Removal]:
    """All that a merged recipe takes away; what is of a wrong form is left out."""
    items: list[Removal] = []
    written = data.get("ablate")
    for number, item in enumerate(written if isinstance(written, list) else ()):
        pairs = item.items() if isinstance(item, Mapping) else [(item, MISSING)]
        for path, now in pairs:
            if isinstance(path, str):
                now = _at(_defaults(), path) if now is MISSING else now
                items.append(Removal(path, _at(data, path), now, f"ablate[{number}]"))
    return items


def problems(data: Mapping) -> Iterator[Problem]:
    """What is wrong with what is taken away."""
    seen: set[str] = set()
    for each in removals(data):
        if each.was is MISSING:
            paths = [path for key, value in data.items() for path, _ in leaf_values(key, value)]
            yield Problem(
                each.place,
                _("the full model has no '{path}' to take away{hint}").format(
                    path=each.path, hint=nearest(each.path, paths)
                ),
            )
        elif each.now is MISSING:
            yield Problem(each.place, _("'{path}' has no default; {remedy}").format(path=each.path, remedy=_say(each)))
        elif each.was == each.now:
            sentence = _("the full model has {value} at '{path}' already, so nothing is taken away").format(
                value=recipe_text(each.now), path=each.path
            )
            yield Problem(each.place, f"{sentence}; {_say(each)}")
        elif each.variant in seen:
            yield Problem(
                each.place,
                _("two models would be called '{variant}'; name each thing once").format(variant=each.variant),
            )
        seen.add(each.variant)


def _say(each: Removal) -> str:
    return _("say what takes its place, as in {{{path}: …}}").format(path=each.path)


def _at(data: Mapping, path: str) -> object:
    """What stands at a dotted path; a component stands for each of its places too. `MISSING` where there is nothing."""
    value: object = data
    keys = path.split(".")
    for number, key in enumerate(keys):
        if isinstance(value, str) or (isinstance(value, Mapping) and "name" in value and number > 1):
            return value if all(place in PLACES for place in keys[number:]) else MISSING
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = value[key]
    return value


@cache
def _defaults() -> Mapping:
    return read(shipped()["base"])[0]
