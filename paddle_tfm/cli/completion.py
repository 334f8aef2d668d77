"""`paddle-tfm completion SHELL`: what the shell needs to complete verbs, recipes and overrides.

Shells hand over what is typed as click asks them to. What stands in the way of `a.b={name: …, …}` is mended here: bash
cuts a word at every `=` and `:`, and forgets names where files may stand too; every shell closes a quote behind a
completion that is the only one; zsh puts a space behind `a.b=`; fish's script cuts a completion at its second comma.
"""

from __future__ import annotations

import re

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

# A shell inserts a word as it is, and would execute what is in another: a recipe may come from anyone.
PLAIN = re.compile(r"[\w ./@+%=,:{}\[\]-]*")
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


class OpenEnded(ShellComplete):
    """Offers what a shell can insert as it is. Of an only completion within braces two are made, so that the shell does
    not close the quote behind it."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one that is being typed."""
        try:
            return super().get_completion_args()
        except (KeyError, ValueError) as error:
            raise UserError("COMP_WORDS and COMP_CWORD must be set as by `paddle-tfm completion`") from error

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What may stand in the place of the word that is being typed."""
        items = super().get_completions(args, incomplete)
        items = [item for item in items if PLAIN.fullmatch(str(item.value).removeprefix(incomplete))]
        return _open_ended(items[0]) if len(items) == 1 and items[0].type == "plain" else items


class Bash(OpenEnded, BashComplete):
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


class Zsh(OpenEnded, ZshComplete):
    """Zsh, without a space behind what continues."""

    source_template = (
        ZshComplete.source_template.replace('                completions+=("$key")', ZSH_KEEP)
        .replace("local -a completions\n", "local -a completions continued\n")
        .replace('    if [ -n "$completions" ]; then', ZSH_ADD)
    )


class Fish(OpenEnded, FishComplete):
    """Fish, with commas within completions."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')


def _open_ended(item: CompletionItem) -> list[CompletionItem]:
    """A value within braces, and how it may continue: closed, or with more."""
    from paddle_tfm.cli.partial_yaml import locate

    text = str(item.value).partition("=")[2]
    cursor = locate(text)
    if cursor is None or not cursor.levels:
        return [item]
    closed = "".join({"{": "}", "[": "]"}[level.opening] for level in reversed(cursor.levels))
    if text.endswith(": "):
        default = (item.help or "").rpartition("default ")[2] or "…"
        return [item, CompletionItem(f"{item.value}{default}{closed}")]
    return [CompletionItem(f"{item.value}{closed}"), CompletionItem(f"{item.value}, ")]


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def register() -> None:
    """Answer shells through these classes."""
    for shell in SHELLS.values():
        add_completion_class(shell)


@click.command(name="completion")
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    It completes verbs, recipes, settings and their values: `model.norm=<TAB>` lists the norms, and within quotes
    `"model.norm={name: batch, <TAB>` the options of that one.

    \b
    Examples:
      eval "$(paddle-tfm completion bash)"      # in ~/.bashrc
      eval "$(paddle-tfm completion zsh)"       # in ~/.zshrc
      paddle-tfm completion fish > ~/.config/fish/completions/paddle-tfm.fish
    """
    from paddle_tfm.cli import group

    script = SHELLS[shell](group, {}, "paddle-tfm", "_PADDLE_TFM_COMPLETE")
    click.echo(script.source())
