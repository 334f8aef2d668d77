"""`paddle-tfm completion SHELL`: what the shell needs to complete verbs, recipes and overrides.

Shells hand over what is typed as click asks them to. What stands in the way of `a.b=value` is mended here: bash cuts a
word at every `=` and `:`, and forgets names where files may stand too; zsh puts a space behind `a.b=`; fish's script
cuts a completion at its second comma. Names of components come from the registry, which imports none; what needs the
class of one, such as its options, imports it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from paddle_tfm.errors import UserError
from paddle_tfm.plugins import create_plugins
from paddle_tfm.registry import Registry

if TYPE_CHECKING:
    from paddle_tfm.options import Option

# A shell inserts a word as it is, and would execute what is in another: a recipe may come from anyone.
PLAIN = re.compile(r"[\w ./@+%=,:{}\[\]-]*")
# no settings of a run
DESCRIPTIVE = ("variants", "grid", "ablate", "name", "summary", "duration", "base", "fast", "claims")
BREAKS = "=:"  # of bash's COMP_WORDBREAKS, those that an override has
# Behind these the word continues: no space.
NO_SPACE = "    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace\n\n    return 0\n"
# Files beside names (a recipe is either), where click's script forgets the names.
FILES = """        elif [[ $type == 'file' && ${#COMPREPLY[@]} != 0 ]]; then
            COMPREPLY+=($(compgen -f -- "$value"))
        elif [[ $type == 'file' ]]; then
"""
# Zsh adds a space behind a completion, unless told that the word continues.
ZSH_KEEP = """                if [[ "$key" == *[=:] ]]; then
                    continued+=("$key")
                else
                    completions+=("$key")
                fi"""
ZSH_ADD = """    if [ -n "$continued" ]; then
        compadd -U -S '' -V unsorted -a continued
    fi

    if [ -n "$completions" ]; then"""


class Plain(ShellComplete):
    """Offers what a shell can insert as it is."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What may stand in the place of the word that is being typed."""
        items = super().get_completions(args, incomplete)
        return [item for item in items if PLAIN.fullmatch(str(item.value).removeprefix(incomplete))]


class Bash(Plain, BashComplete):
    """Bash, whose pieces of a word are put together again."""

    source_template = BashComplete.source_template.replace("    return 0\n", NO_SPACE).replace(
        "        elif [[ $type == 'file' ]]; then\n", FILES
    )
    pieces = ""  # of the word at the cursor, those that bash takes for earlier words

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one that is being typed."""
        before, piece = super().get_completion_args()
        words: list[str] = []
        after_break = False
        for word in [*before, piece]:
            # A break stands alone in bash's list; it joins what is before it and what is behind it.
            is_break = word in tuple(BREAKS)
            if words and (is_break or after_break):
                words[-1] += word
            else:
                words.append(word)
            after_break = is_break
        *earlier, word = words
        # What bash replaces: the last piece; a break alone stays where it is.
        self.pieces = word if piece in tuple(BREAKS) else word.removesuffix(piece)
        return earlier, word

    def format_completion(self, item: CompletionItem) -> str:
        """What bash puts in the place of the last piece."""
        return f"{item.type},{str(item.value).removeprefix(self.pieces)}"


class Zsh(Plain, ZshComplete):
    """Zsh, without a space behind what continues."""

    source_template = (
        ZshComplete.source_template.replace('                completions+=("$key")', ZSH_KEEP)
        .replace("local -a completions\n", "local -a completions continued\n")
        .replace('    if [ -n "$completions" ]; then', ZSH_ADD)
    )


class Fish(Plain, FishComplete):
    """Fish, with commas within completions."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def register() -> None:
    """Answer shells through these classes."""
    for shell in SHELLS.values():
        add_completion_class(shell)


@click.command(name="completion")
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    It completes verbs, recipes, settings and their values: `model.norm=<TAB>` lists the norms, `model.norm.<TAB>` the
    options of the recipe's.

    \b
    Examples:
      eval "$(paddle-tfm completion bash)"      # in ~/.bashrc
      eval "$(paddle-tfm completion zsh)"       # in ~/.zshrc
      paddle-tfm completion fish > ~/.config/fish/completions/paddle-tfm.fish
    """
    from paddle_tfm.cli import group

    script = SHELLS[shell](group, {}, "paddle-tfm", "_PADDLE_TFM_COMPLETE")
    click.echo(script.source())


# ---------------------------------------------------------------------------------------------------------- a.b=value


def complete_override(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What may follow in `a.b=value`, for the recipe on the command line."""
    from paddle_tfm.recipe.reading import find, read

    try:
        data, _ = read(find(context.params.get("recipe") or context.info_name or ""))
    except UserError:
        return []
    path, equals, value = incomplete.partition("=")
    if not equals:
        return [CompletionItem(each) for each in _paths(data, path)]
    *chosen, word = value.split(",")  # several values are variants
    before = incomplete.removesuffix(word)
    return [
        CompletionItem(before + text, help=hint)
        for text, hint in _values(data, path)
        if text.startswith(word) and text not in chosen
    ]


def _kinds() -> dict[str, str]:
    """path → the kind of component that a recipe names there."""
    from paddle_tfm.hookspecs import KINDS
    from paddle_tfm.recipe.sites import place

    elsewhere = ("metric", "dataset", "executor", "section", "kernel")
    return {place(kind): kind for kind in KINDS if kind not in elsewhere} | {"evaluate.search": "search"}


def _places(kind: str) -> tuple[str, ...]:
    """The stacks and sublayers for which a recipe may choose a kind apart."""
    from paddle_tfm.recipe.sites import PER_SITE, STACKS, SUBLAYERS

    if kind == "tokenizer":
        return ("source", "target")
    if kind not in PER_SITE:
        return ()
    sublayers = {each for stack in PER_SITE[kind].values() for each in stack}
    return (*STACKS, *(each for each in SUBLAYERS if each in sublayers and len(sublayers) > 1))


def _paths(data: Mapping, incomplete: str) -> list[str]:
    """Paths of values, with `=`; below a component its options, and the places where it may differ."""
    leaves = set(_leaves(data))
    for path, kind in _kinds().items():
        if incomplete.startswith(f"{path}."):
            leaves |= {f"{path}.{key}" for key in (*_options(kind, _at(data, path)), *_places(kind))}
    return sorted(f"{path}=" for path in leaves if path.startswith(incomplete))


def _leaves(data: Mapping, path: str = "") -> list[str]:
    leaves = []
    for key, value in data.items():
        inner = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict) and "name" not in value:
            leaves += [] if inner in DESCRIPTIVE else _leaves(value, inner)
        elif inner not in DESCRIPTIVE:
            leaves.append(inner)
    return leaves


def _at(data: Mapping, path: str) -> Any:
    value: Any = data
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _values(data: Mapping, path: str) -> list[tuple[str, str | None]]:
    """(value, what it is) of all that may stand at a path."""
    above, _, last = path.rpartition(".")
    for known, kind in _kinds().items():
        if path == known or (above == known and last in _places(kind)):
            registry = Registry(create_plugins())
            return [(name, registry.entry(kind, name).summary()) for name in registry.names(kind)]
        if above == known and (option := _options(kind, _at(data, known)).get(last)):
            return _of_type(option.annotation)
    return _of_type(_annotation(path))


def _of_type(annotation: object) -> list[tuple[str, str | None]]:
    """All values of a type, where they are a few words."""
    if annotation is bool:
        return [("true", None), ("false", None)]
    return [(str(each), None) for each in get_args(annotation)] if get_origin(annotation) is Literal else []


def _annotation(path: str) -> Any:
    """That of a field of the settings; None where there is none."""
    from paddle_tfm.recipe.sections import keys
    from paddle_tfm.recipe.settings import Settings

    annotation: Any = Settings
    for key in path.split("."):
        field = keys(annotation).get(key)
        annotation = None if field is None else field.annotation
    return annotation


def _options(kind: str, component: object) -> dict[str, Option]:
    """Those of a component, which need not exist."""
    from paddle_tfm.runtime import load_paddle

    name = str(component.get("name", "") if isinstance(component, Mapping) else component)
    try:
        load_paddle()  # quietly
        return Registry(create_plugins()).options(kind, name)
    except UserError:
        return {}
