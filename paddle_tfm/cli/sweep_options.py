"""What `run` says of a whole sweep by options: which seeds, against which variant; and its recipe, saved."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from paddle_tfm.cli.durations import Duration
from paddle_tfm.errors import UserError
from paddle_tfm.units import whole_number

MAX_SEEDS = 1_000
MAX_SEED = 2**31 - 1
SEEDS_FORM = "must be how many, such as 5, or a list of numbers below 2**31, such as 3,7,9"


def as_overrides(seeds: str | None, baseline: str | None) -> list[str]:
    """The overrides that say what --seeds and --baseline say.

    Raises:
        UserError: the seeds are no numbers.
    """
    overrides = [] if seeds is None else [f"seeds={_seeds(seeds)}"]
    if baseline is not None:
        bare = bool(re.fullmatch(r"[A-Za-z][\w.+-]*", baseline)) and baseline not in ("true", "false", "null")
        overrides.append(f"baseline={baseline if bare else json.dumps(baseline, ensure_ascii=False)}")
    return overrides


def _seeds(text: str) -> list[int]:
    """Seeds 1 to N of a number; those of a list."""
    if text.strip().isdecimal():
        number = whole_number(text.strip(), 1, MAX_SEEDS)
        if number is None:
            raise UserError(f"--seeds {text}: must be 1 to {MAX_SEEDS:,} seeds")
        return list(range(1, number + 1))
    parts = text.strip().removeprefix("[").removesuffix("]").split(",")
    seeds = [seed for part in parts if (seed := whole_number(part.strip(), 0, MAX_SEED)) is not None]
    if len(seeds) < len(parts):
        raise UserError(f"--seeds {text}: {SEEDS_FORM}")
    return seeds


def require_new(path: Path | None) -> None:
    """Raises UserError, before anything is done, where the recipe cannot be saved."""
    if path is None:
        return
    if path.suffix not in (".yaml", ".yml"):
        raise UserError(f"--save {path}: a recipe's name ends in .yaml")
    if path.exists():
        raise UserError(f"--save {path}: is there already; name another file, or delete it")
    if not path.parent.is_dir():
        raise UserError(f"--save {path}: there is no folder {path.parent}")


def save(recipe, path: Path) -> None:
    """Write the recipe with everything merged, and the command that it comes from."""
    from paddle_tfm.files import write_named
    from paddle_tfm.recipe import yaml_lines

    command = " ".join(shlex.join(["paddle-tfm", "run", *recipe.arguments]).split())
    write_named(path, f"# {command}\n{yaml_lines.dump(recipe.data)}")


def complete_variant(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The variants of the recipe on the command line."""
    from paddle_tfm.recipe import loading

    # Behind an option without its value click leaves arguments unread.
    overrides = context.params.get("overrides") or [text for text in context.args if "=" in text]
    try:
        recipe = loading.load(context.info_name or "", overrides)
    except UserError:
        return []
    return [name for name in recipe.written_variants() if name.startswith(incomplete)]


def sweep_options(command):
    """The options --seeds, --baseline, --budget, --dry-run and --save."""
    decorators: Sequence = (
        click.option(
            "--seeds",
            metavar="N|N,N,…",
            help="How many (seeds 1 to N), or which; `seeds=[7]` is seed 7 alone. Default: what the recipe says.",
        ),
        click.option(
            "--baseline",
            metavar="VARIANT",
            shell_complete=complete_variant,
            help="The variant that the others are compared with. Default: what the recipe says, or the first.",
        ),
        click.option(
            "--budget",
            type=Duration("30m, 2h, 90s or 1h30m", least="1s"),
            metavar="30m|2h|90s",
            help="Train within this time as many seeds of every variant as fit by 20 steps of each: all steps, the "
            "same seeds for all, 2 to 12 of them, or at most --seeds. Where fewer fit, nothing is trained.",
        ),
        click.option(
            "--dry-run",
            is_flag=True,
            help="Say what the runs would cost (tokens, time, memory) by 20 steps of each variant; train and write "
            "nothing. Only data that are missing are fetched.",
        ),
        click.option(
            "--save",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE.yaml",
            help="Write all of this into a recipe of its own: `paddle-tfm run FILE.yaml` trains the same runs.",
        ),
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command
