"""A recipe's data as settings, or a sentence with file and line for each thing that is wrong with its structure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args, get_origin

from pydantic import ValidationError

from paddle_tfm.errors import Problem, nearest, unknown
from paddle_tfm.language import _
from paddle_tfm.other_names import name_here
from paddle_tfm.recipe.sections import Section, keys
from paddle_tfm.recipe.sections.seeds import LIST, PLAN
from paddle_tfm.recipe.settings import ModelSettings, Settings, TrainSettings
from paddle_tfm.recipe.sites import PER_SITE
from paddle_tfm.recipe.yaml_lines import COMMAND_LINE, Origins, join


def locate(problem: Problem, origins: Origins) -> Problem:
    """The problem with the file and line of the longest prefix of its path that was written somewhere; or of another
    setting that its sentence names in backticks, if that was written later: what a user set on the command line or in
    the recipe is what there is to mend, and not a default that does not fit to it."""
    written = _origin(problem.path, origins)
    places = [*([written] if written else []), *(origins[path] for path in _named_settings(problem) if path in origins)]
    if not places:
        return problem
    recipe, _ = origins.get("", ("", 0))
    file, line = min(places, key=lambda place: (place[0] != COMMAND_LINE, place[0] not in (COMMAND_LINE, recipe)))
    return replace(problem, file=file, line=line or None)


def _origin(path: str, origins: Origins) -> tuple[str, int] | None:
    while path:
        if path in origins:
            return origins[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


def _named_settings(problem: Problem) -> Iterator[str]:
    """Paths of the settings that a sentence names: an option of the same component, or of a section, `num_heads`; or a
    whole path, `vocabulary.shared=true`."""
    for name in re.findall(r"`([\w.]+)(?:=[^`]*)?`", problem.message):
        yield f"{problem.path}.{name}"
        section, _, key = name.partition(".")
        if key and section in Settings.model_fields:
            yield name
        elif problem.path.startswith("model.") and name in ModelSettings.model_fields:
            yield f"model.{name}"
        elif name in keys(TrainSettings):
            yield f"train.{name}"


def validate(data: dict, origins: Origins) -> tuple[Settings | None, list[Problem]]:
    """The settings, or all that their structure has wrong (components are the plan's to check)."""
    try:
        return Settings.model_validate(data), []
    except ValidationError as error:
        return None, [locate(_problem(item), origins) for item in _one_a_path(error.errors())]


def sound_sections(data: Mapping, settings: Settings | None) -> dict[str, Any]:
    """name → section: those of `settings`, or, where there are none because the structure is wrong somewhere, those of
    `data` that are sound."""
    sections = {}
    for name, item in Settings.model_fields.items():
        if isinstance(item.annotation, type) and issubclass(item.annotation, Section):
            with contextlib.suppress(ValidationError):
                value = getattr(settings, name, None)
                sections[name] = item.annotation.model_validate(data.get(name)) if value is None else value
    return sections


# pydantic's kinds of errors -> what a value must be
_MUST_BE = {
    "component": "a name or {name: …, options…}",
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "too_short": "a list of one or more",
    "string_pattern_mismatch": "of letters, digits, `_`, `.` and `-`",
}


def _one_a_path(errors: Sequence[Mapping]) -> Iterator[dict]:
    """One error a path: a union (name or mapping) complains once for each of its members."""
    paths = set()
    for error in errors:
        location = tuple(part for part in error["loc"] if part not in (LIST, PLAN))
        path = tuple(part for part in location if part not in ("str", "dict[any,any]"))
        if path not in paths:
            paths.add(path)
            yield {**error, "loc": path, "type": error["type"] if path == location else "component"}


def _problem(error: dict) -> Problem:
    """pydantic's error as a sentence of ours."""
    path = ""
    for part in error["loc"]:
        path = f"{path}[{part}]" if isinstance(part, int) else join(path, part)
    kind, value = error["type"], error.get("input")
    if kind == "extra_forbidden":
        return Problem(path, _unknown_key(error["loc"]))
    if kind == "missing":
        return Problem(path, f"{_('is missing')}; {_section(error['loc'][:-1]).where_a_key_is_missing}")
    if kind == "value_error":
        sentence, *subpath = error["ctx"]["error"].args
        return Problem("".join([path, *subpath]), str(sentence))
    must_be = _(_MUST_BE.get(kind, "")) or _bound(error) or error["msg"].removeprefix("Input should be ")
    if kind == "component" and path in _FORMS:
        must_be = _("a name, {{name: …, options…}} or {form}").format(form=_FORMS[path])
    elif _may_be_empty(error["loc"]):
        must_be += _(" or null")
    text = _("must be {allowed}, but is {value}")
    if kind in ("dict_type", "model_type") and ":" in str(value).replace("：", ":"):
        text += _("; write `key: value`, with a half-width colon and a space")
    return Problem(path, text.format(allowed=must_be, value=_("empty") if value is None else repr(value)))


def _bound(error: Mapping) -> str:
    """The numbers that a setting may be; "" where its error is another."""
    texts = {
        "greater_than": _("greater than {bound}"),
        "greater_than_equal": _("greater than or equal to {bound}"),
        "less_than": _("less than {bound}"),
        "less_than_equal": _("less than or equal to {bound}"),
    }
    return texts.get(error["type"], "").format(bound=error["msg"].rpartition(" ")[2])


def _unknown_key(location: Sequence[str | int]) -> str:
    """That it is unknown, and where it stands, or what it is called here where others call it so."""
    *place, key = location
    section = _section(place)
    slip = nearest(key, list(keys(section)), cutoff=0.85)  # `size` for `ladder.sizes`
    if place and key in Settings.model_fields and not slip:
        return _("unknown key '{key}'; it stands outside of '{place}'").format(key=key, place=place[0])
    keys_of = {name: keys(field.annotation) for name, field in Settings.model_fields.items()}
    sections = [name for name, known in keys_of.items() if key in known]
    here = f"'{sections[0]}.{key}'" if sections else name_here(".".join(map(str, place)), key)
    other = _("unknown key '{key}'; here that is {here}")
    return other.format(key=key, here=here) if here else unknown("key", key, keys(section))


def _section(location: Sequence[str | int]) -> Any:
    """The class of the settings at a path."""
    section: Any = Settings
    for part in location:
        if get_origin(section) is dict:  # part is a name that the user chose
            section = get_args(section)[1]
        elif field := keys(section).get(str(part)):
            section = _section_in(field.annotation) or field.annotation
    return section


def _section_in(annotation: Any) -> type[Section] | None:
    """The section that an annotation allows beside other forms, `LadderSettings | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    forms = () if get_origin(annotation) is dict else get_args(annotation)
    return next((section for form in forms if (section := _section_in(form))), None)


# what more than a component may stand there
_FORMS = {f"model.{kind}": "{encoder: …, decoder: …}" for kind in PER_SITE} | {"tokenizer": "{source: …, target: …}"}


def _may_be_empty(location: Sequence[str | int]) -> bool:
    """Whether a setting may be null."""
    field = keys(_section(location[:-1])).get(str(location[-1]))
    return field is not None and type(None) in get_args(field.annotation)
