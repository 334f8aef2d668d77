"""What `paddle-tfm show KIND:NAME` prints: all about one component."""

from __future__ import annotations

import inspect
import re
import shlex
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from paddle_tfm.cli.common import console
from paddle_tfm.cli.tables import print_table
from paddle_tfm.component_source import papers
from paddle_tfm.components import Entry
from paddle_tfm.language import _
from paddle_tfm.options import Option, component_kind, parameters
from paddle_tfm.recipe.sites import place
from paddle_tfm.recipe.uses import default, uses
from paddle_tfm.recipe.yaml_lines import recipe_text
from paddle_tfm.registry import Registry
from paddle_tfm.tabular import Table, column, wrapped

OTHER_PAPERS = re.compile(r"\b(?:aclanthology\.org/|doi\.org/|openreview\.net/)[^\s);,]+")
NAMED_RECIPES = 8  # that are printed
MAX_CHOICES = 24  # of an option, that are written out
TYPES = {"int": "whole number", "float": "number", "bool": "true or false", "str": "text", "None": "null"}
ENGINE = "from the model"  # the default of a given that a recipe may set


def facts(entry: Entry, registry: Registry) -> dict[str, Any]:
    """All that is known of a component, as data.

    Raises:
        UserError: its class cannot be loaded.
    """
    cls: type = entry.load()
    docstring = inspect.getdoc(cls) or ""
    givens: frozenset[str] = getattr(cls, "givens", frozenset())
    filled = [name for name in parameters(cls) if name in givens]
    protocol = next(each for each in cls.__mro__ if "kind" in vars(each))
    meanings = _meanings(inspect.getdoc(protocol) or "")
    options = registry.options(entry.kind, entry.name)
    settings = _example_settings(options, givens, entry, registry)
    plugin = f" --plugin {shlex.quote(entry.provider.source)}" if entry.provider.is_file else ""
    command = _on_command_line(entry.kind, settings) + plugin
    return {
        "kind": entry.kind,
        "name": entry.name,
        "plugin": entry.provider.plugin,
        "version": f"{entry.provider.source} {entry.provider.version}".strip(),
        "class": entry.target if isinstance(entry.target, str) else f"{cls.__module__}:{cls.__name__}",
        "wrong_on_purpose": entry.wrong_on_purpose,
        "summary": entry.summary(),
        "docstring": docstring,
        "filled_in": {name: meanings.get(name, "") for name in filled},
        "options": [_option(option, from_engine=name in filled) for name, option in options.items()],
        "expected_failures": dict(getattr(cls, "expected_failures", {})),
        "papers": _papers(docstring),
        "default": default(entry.kind) == entry.name,
        "recipes": uses(entry.kind, entry.name, registry),
        "example": {"recipe": _in_recipe(entry.kind, settings), "command": command},
        "check": f"paddle-tfm plugin check {entry.kind}:{entry.name}{plugin}",
    }


def print_page(about: Mapping[str, Any]) -> None:
    """The page of a component, for people."""
    title = f"{about['kind']}:{about['name']}"
    _line(f"[bold cyan]{title}[/]  [dim]{_plain(about['class'])}, {_plain(about['version'])}[/]")
    if about["wrong_on_purpose"]:
        _line(_("[red]wrong on purpose:[/] it demonstrates a mistake; do not build on it"))
    summary, *paragraphs = [" ".join(text.split()) for text in about["docstring"].split("\n\n")] or [""]
    _prose(summary)
    spoken = [text for text in paragraphs if not text.startswith(("Options:", "Raises:", "Example"))]
    if spoken:
        _heading(_("Formula") if re.match(r"(Formula:|[^.:]{0,70}?[^<>]=)", spoken[0]) else _("How it works"))
        for text in spoken:
            _prose(text.removeprefix("Formula: "))
    if about["filled_in"]:
        _heading(_("The engine fills in"))
        for name, meaning in about["filled_in"].items():
            _prose(f"{name}: {meaning}" if meaning else name, hang=4)
    _heading(_("Options") if about["options"] else _("Options: none"))
    if about["options"]:
        columns = [
            column("name", style="cyan"),
            column("must_be", "must be", prose=True),
            column("default"),
        ]
        print_table(Table(columns, about["options"]))
        for text in paragraphs:
            if text.startswith(("Options:", "Raises:")):
                _prose(text)
    if about["expected_failures"]:
        _heading(_("Expected failures, of checks that it cannot pass though it is right"))
        for name, reason in about["expected_failures"].items():
            _prose(f"{name}: {reason}" if reason else name, hang=4)
    if about["papers"]:
        _heading(_("Papers"))
        for paper in about["papers"]:
            _prose(paper)
    _recipes(about)
    _heading(_("Example"))
    if about["example"]["recipe"]:
        _line(f"  {_('in a recipe     ')}{_plain(about['example']['recipe'])}")
    _line(f"  {_('for one run     ')}{_plain(about['example']['command'])}")
    _line(f"  {_('is it right?    ')}{_plain(about['check'])}")


def _recipes(about: Mapping[str, Any]) -> None:
    _heading(_("Recipes that name it") if about["recipes"] else _("Recipes that name it: none that ships"))
    if about["default"]:
        _prose(_("the default (base.yaml)"))
    for recipe, variants in list(about["recipes"].items())[:NAMED_RECIPES]:
        named = [variant for variant in variants if variant != "default"]
        _prose(f"{recipe}: {', '.join(named)}" if named else recipe, hang=4)
    if (more := len(about["recipes"]) - NAMED_RECIPES) > 0:
        _prose(_("and {more} more (--json has all)").format(more=more))


def _option(option: Option, from_engine: bool) -> dict[str, object]:
    kind, choices = component_kind(option.annotation), _literal_choices(option.annotation)
    missing = ENGINE if from_engine else "required"
    return {
        "name": option.name,
        "must_be": _must_be(option, choices),
        "default": missing if option.required else recipe_text(option.default),
        "required": option.required and not from_engine,
        "choices": list(choices),
        "kind": kind[0] if kind else None,
    }


def _must_be(option: Option, choices: Sequence[str]) -> str:
    """The type of an option, in words: `whole number or null`."""
    if nested := component_kind(option.annotation):
        noun = f"{nested[0]}: a name or {{name: …, options…}}"
        return f"list of such: {noun}" if nested[1] else noun
    words = [
        _in_words(each) for each in _alternatives(option.annotation) if typing.get_origin(each) is not typing.Literal
    ]
    if not choices:
        return " or ".join(filter(None, words))
    if numbers := [word for word in words if word in (TYPES["int"], TYPES["float"])]:  # or one of a few words
        return f"{numbers[0]}, or {', '.join(choices)}"
    shown = choices if len(choices) <= MAX_CHOICES else [*choices[:MAX_CHOICES], "…"]
    return f"one of {', '.join(shown)}" + (", or null" if TYPES["None"] in words else "")


def _alternatives(annotation: object) -> tuple[object, ...]:
    """The types of a union; of another annotation, it alone."""
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if union else (annotation,)


def _in_words(annotation: object) -> str:
    """A type, for people: `list of whole numbers`."""
    if annotation is typing.Any:
        return ""
    plain = isinstance(annotation, type) and not typing.get_args(annotation)
    text = getattr(annotation, "__name__", "") if plain else re.sub(r"\b(\w+\.)+", "", str(annotation))
    words = re.sub(r"\b(int|float|bool|str|None)(Type)?\b", lambda match: TYPES[match[1]], text)
    return re.sub(r"\b[Ll]ist\[([^\[\]]*)\]", r"list of \1s", words).replace(" | ", " or ")


def _literal_choices(annotation: object) -> tuple[str, ...]:
    """Of `Literal["a", "b"]`, also where something else may stand instead."""
    literals = (each for each in _alternatives(annotation) if typing.get_origin(each) is typing.Literal)
    return tuple(str(choice) for each in literals for choice in typing.get_args(each))


def _meanings(docstring: str) -> dict[str, str]:
    """given → what it is, from the paragraph `Givens:` of a protocol: `d_model: C. steps: of the whole run.`"""
    paragraph = re.search(r"^Givens:\s*\n(.*?)(?:\n\s*\n|\Z)", docstring, re.DOTALL | re.MULTILINE)
    if paragraph is None:
        return {}
    text = " ".join(paragraph[1].split())
    parts = re.split(r"(?:^|(?<=\. ))((?:\w+, )*\w+): ", text)[1:]
    meanings: dict[str, str] = {}
    for names, meaning in zip(parts[::2], parts[1::2]):
        meanings |= dict.fromkeys(names.split(", "), meaning.strip().removesuffix("."))
    return meanings


def _papers(docstring: str) -> list[str]:
    numbers = papers(docstring)
    others = list(dict.fromkeys(match[0].rstrip(".") for match in OTHER_PAPERS.finditer(docstring)))
    return [*(f"arXiv:{number}  https://arxiv.org/abs/{number}" for number in numbers), *others]


# ------------------------------------------------------------------------------------------------------------- example


def _example_settings(
    options: Mapping[str, Option],
    givens: frozenset[str],
    entry: Entry,
    registry: Registry,
) -> str:
    """The component as a recipe names it, with what it requires and one option that it does not."""
    settings = {
        name: _required(option, entry, registry)
        for name, option in options.items()
        if option.required and name not in givens
    }
    plain = [option for option in options.values() if not option.required and option.default not in (None, "")]
    if plain and len(settings) < 2:
        settings[plain[0].name] = recipe_text(plain[0].default)
    if not settings:
        return entry.name
    return f"{{name: {entry.name}, {', '.join(f'{name}: {value}' for name, value in settings.items())}}}"


def _required(option: Option, entry: Entry, registry: Registry) -> str:
    """A value for an option without a default."""
    nested = component_kind(option.annotation)
    if nested is None:
        choices = _literal_choices(option.annotation)
        return choices[0] if choices else "FILE" if "file" in option.name else "…"
    kind, several = nested
    names = [name for name in registry.names(kind) if (kind, name) != (entry.kind, entry.name)]
    preferred = [name for name in ("sinusoidal", "alibi", "tatoeba-en-zh") if name in names] or names
    return f"[{', '.join(preferred[:2])}]" if several else preferred[0]


def _in_recipe(kind: str, settings: str) -> str:
    if kind in ("executor", "section", "kernel"):
        return ""  # it changes no number, so that no recipe names it
    if kind == "metric":
        return f"evaluate: {{metrics: [exact_match, {settings}]}}"
    if kind == "dataset":
        return f"task: {{name: parallel, dataset: {settings}}}"
    section, _, key = place(kind).partition(".")
    return f"{section}: {{{key}: {settings}}}" if key else f"{section}: {settings}"


def _on_command_line(kind: str, settings: str) -> str:
    """A whole command that trains with it; of a section one that shows it, of a kernel one that shows what it gains."""
    if kind == "section":
        return "paddle-tfm report runs/quickstart"
    if kind == "kernel":
        return "paddle-tfm check quickstart --no-kernels"
    if kind == "metric":
        return f'paddle-tfm run reverse "evaluate.metrics=[exact_match, {settings}]"'
    if kind == "dataset":
        return f'paddle-tfm run multi30k "task={{name: parallel, dataset: {settings}}}"'
    override = f"{place(kind)}={settings}"
    mark = "'" if '"' in override else '"'
    quoted = f"{mark}{override}{mark}" if "{" in override else override
    return f"paddle-tfm run {'multi30k' if kind == 'tokenizer' else 'reverse'} {quoted}"


# ------------------------------------------------------------------------------------------------------------ printing


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _line(text: str) -> None:
    console().print(text, soft_wrap=True)


def _heading(text: str) -> None:
    console().print()
    console().print(f"[bold]{_plain(text)}[/]", soft_wrap=True)


def _prose(text: str, hang: int = 2) -> None:
    """A paragraph, indented; further lines by `hang`."""
    from paddle_tfm.cli.tables import page_width

    width = page_width()
    lines = [text] if width is None else wrapped(text, max(width - hang, 20))
    for i, line in enumerate(lines):
        _line(" " * (hang if i else 2) + _plain(line))
