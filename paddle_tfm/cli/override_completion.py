"""Completion of `a.b=value`: paths of the recipe, names of components behind `=`, their options within `{name: …, …}`.

Nothing of it imports Paddle: options are read from the components' sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import click
from click.shell_completion import CompletionItem

from paddle_tfm.cli.partial_yaml import Cursor, Level, locate
from paddle_tfm.component_source import ComponentSource, OptionSource, kind_of_annotation
from paddle_tfm.errors import UserError
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.plugins import create_plugins
from paddle_tfm.recipe.reading import find, read
from paddle_tfm.recipe.sites import PER_SITE, STACKS, SUBLAYERS, place
from paddle_tfm.recipe.yaml_lines import split
from paddle_tfm.registry import Registry

DESCRIPTIVE = ("variants", "grid", "name", "summary", "duration", "base", "fast", "claims")
KIND_AT = {place(kind): kind for kind in KINDS if kind not in ("metric", "dataset", "executor", "section")} | {
    "evaluate.search": "search"
}
METRICS = "evaluate.metrics"  # a list of them


def complete_override(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What may follow in `a.b=value`, for the recipe on the command line."""
    try:
        data, _ = read(find(context.params.get("recipe") or context.info_name or ""))
    except UserError:
        return []
    path, equals, value = incomplete.partition("=")
    if not equals:
        return [CompletionItem(each) for each in _paths(data, path)]
    return [CompletionItem(f"{path}={text}", help=hint) for text, hint in _values(data, path, value)]


@lru_cache(maxsize=1)
def _registry() -> Registry:
    return Registry(create_plugins())


# --------------------------------------------------------------------------------------------------------------- paths


def _paths(data: Mapping, incomplete: str) -> list[str]:
    """Paths of values, with `=`; below a component its options, and the places where it may differ."""
    leaves = set(_leaves(data))
    for path, kind in KIND_AT.items():
        if incomplete.startswith(f"{path}."):
            leaves |= {f"{path}.{key}" for key in _keys(kind, _at(data, path), path)}
    return sorted(f"{path}=" for path in leaves if path.startswith(incomplete))


def _leaves(data: Mapping, path: str = "") -> list[str]:
    leaves = []
    for key, value in data.items():
        if not path and key in DESCRIPTIVE:
            continue
        inner = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict) and "name" not in value:
            leaves += _leaves(value, inner)
        else:
            leaves.append(inner)
    return leaves


def _at(data: Mapping, path: str) -> Any:
    value: Any = data
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _keys(kind: str, value: object, path: str) -> list[str]:
    """What may stand below the component at `path`: its options, and the places of a kind that is chosen per place."""
    name = value.get("name") if isinstance(value, Mapping) else value
    return [*_options(kind, str(name)), *(_places(kind) if path.startswith("model.") else ())]


# -------------------------------------------------------------------------------------------------------------- values


def _values(data: Mapping, path: str, text: str) -> Iterable[tuple[str, str | None]]:
    """(value, what it is) of all that may be typed at `path` behind `text`."""
    cursor = locate(text)
    if cursor is None:
        return []
    kind, below = _kind(data, path)
    listed = path == METRICS
    if below:  # an option of the component at a path above
        candidates = _of_option(below, path.rpartition(".")[2], kind, cursor)
    elif kind:
        candidates = _of_kind(kind, cursor.levels, cursor, whole_list=listed)
    else:
        candidates = [] if cursor.levels else _plain_values(_at(data, path), path, data)
    chosen = [] if cursor.levels else split(text)[:-1]  # of several values, those before this one
    return [
        (cursor.before + each, hint) for each, hint in candidates if each.startswith(cursor.word) and each not in chosen
    ]


def _kind(data: Mapping, path: str) -> tuple[str, str]:
    """(kind, "") of the component that a path names, or (kind, name) of the component whose option it names."""
    if path == METRICS:
        return "metric", ""
    for known, kind in KIND_AT.items():
        if path == known:
            return kind, ""
        if path.startswith(f"{known}."):
            *parents, last = path.removeprefix(f"{known}.").split(".")
            if last in _places(kind) and all(each in _places(kind) for each in parents):
                return kind, ""
            value = _at(data, path.rpartition(".")[0]) or _at(data, known)
            return kind, str(value.get("name", "") if isinstance(value, Mapping) else value)
    return "", ""


def _of_kind(kind: str, levels: tuple[Level, ...], cursor: Cursor, whole_list: bool = False):
    """Candidates for a component, or within one: the levels lead from its value to the cursor."""
    if not levels:
        return [] if whole_list else _names(kind)
    level, inner = levels[0], levels[1:]
    if level.opening == "[":
        return _of_kind(kind, inner, cursor)
    if level.key is None:
        if inner:
            return []
        return _keys_of_mapping(kind, level)
    if level.key == "name":
        return [] if inner else _names(kind)
    if level.key in _places(kind) and "name" not in level.texts:
        return _of_kind(kind, inner, cursor)
    return _of_option(level.texts.get("name", ""), level.key, kind, Cursor(inner, cursor.word, cursor.before))


def _keys_of_mapping(kind: str, level: Level) -> list[tuple[str, str | None]]:
    """`name: ` or a place at first; then the options of the named component, each with its default."""
    if not level.texts:
        return [("name: ", None), *((f"{each}: ", None) for each in _places(kind))]
    if "name" not in level.texts:
        return [(f"{each}: ", None) for each in _places(kind) if each not in level.texts]
    options = _options(kind, level.texts["name"])
    return [(f"{name}: ", _hint(option)) for name, option in options.items() if name not in level.texts]


def _of_option(component: str, option_name: str, kind: str, cursor: Cursor) -> list[tuple[str, str | None]]:
    """Candidates for the value of an option."""
    option = _options(kind, component).get(option_name)
    if option is None:
        return []
    inner = kind_of_annotation(option.annotation, _registry().entry(kind, component).target)
    if inner:
        listed = option.annotation.startswith("list") and not cursor.levels
        return [("[", f"a list of {inner}s")] if listed else list(_of_kind(inner, cursor.levels, cursor))
    if cursor.levels:
        return []
    if option.choices:
        return [(choice, None) for choice in option.choices]
    if option.annotation.startswith("bool"):
        return [("true", None), ("false", None)]
    return [] if option.default is None else [(option.default, "the default")]


def _hint(option: OptionSource) -> str:
    """What an option may be, in a few words."""
    default = "required" if option.default is None else f"default {option.default}"
    return ", ".join(part for part in (option.rule, default) if part)


def _names(kind: str) -> list[tuple[str, str | None]]:
    """All components of a kind, each with what it is."""
    return [(name, _registry().entry(kind, name).summary()) for name in _registry().names(kind)]


def _options(kind: str, name: str) -> dict[str, OptionSource]:
    """Those of a component, which need not exist."""
    try:
        return ComponentSource(_registry().entry(kind, name).target).options()
    except UserError:
        return {}


def _places(kind: str) -> tuple[str, ...]:
    """The stacks and sublayers for which a recipe may choose a kind apart."""
    if kind == "tokenizer":
        return ("source", "target")
    if kind not in PER_SITE:
        return ()
    sublayers = {each for stack in PER_SITE[kind].values() for each in stack}
    return (*STACKS, *(each for each in SUBLAYERS if each in sublayers and len(sublayers) > 1))


def _plain_values(now: object, path: str, data: Mapping) -> list[tuple[str, str | None]]:
    """Of a plain setting: what may be chosen, or else its value now."""
    from paddle_tfm.component_source import recipe_text

    if isinstance(now, bool):
        return [("true", None), ("false", None)]
    if path == "evaluate.best":
        metrics = _at(data, METRICS) or []
        names = [each.get("name") if isinstance(each, Mapping) else each for each in metrics]
        return [(str(name), None) for name in ["loss", *names]]
    if choices := _choices(path):
        return [(choice, None) for choice in choices]
    return [] if now is None or isinstance(now, Mapping) else [(recipe_text(now), "as it is now")]


def _choices(path: str) -> tuple[str, ...]:
    """What a field of the settings may be, if that is a list of words."""
    from typing import Literal, get_args, get_origin

    from paddle_tfm.recipe.settings import Settings

    model: Any = Settings
    for key in path.split("."):
        field = getattr(model, "model_fields", {}).get(key)
        if field is None:
            return ()
        model = field.annotation
    return tuple(map(str, get_args(model))) if get_origin(model) is Literal else ()
