"""`paddle-tfm plugin check`: what a user names is found, examined by the conformance kit, and reported."""

from __future__ import annotations

import faulthandler
from collections.abc import Sequence
from typing import Any

import click

from paddle_tfm.cli.common import create_registry, device_option, plugin_option, use_device
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.registry import AS_KINDS


def _options(context: click.Context, parameter: click.Parameter, items: Sequence[str]) -> dict[str, object]:
    options = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"'{item}' must be NAME=VALUE")
        options[name] = yaml_lines.value(value)
    return options


def _complete_target(context: click.Context, parameter: click.Parameter, incomplete: str):
    """Kinds, names of components, also behind their kind, then files."""
    from click.shell_completion import CompletionItem

    entries = [entry for entry in create_registry() if not entry.wrong_on_purpose]
    names = {name for each in entries for name in (each.kind, each.name, f"{each.kind}:{each.name}")}
    matching = [] if context.params.get("as_kind") else sorted(name for name in names if name.startswith(incomplete))
    return [*map(CompletionItem, matching), CompletionItem(incomplete, type="file")]


@click.command(name="check")
@click.argument("target", required=False, shell_complete=_complete_target)
@click.option(
    "--as",
    "as_kind",
    type=click.Choice(AS_KINDS),
    help="TARGET is an ordinary layer or a whole model, written without paddle_tfm.",
)
@click.option(
    "--option", "options", multiple=True, callback=_options, metavar="NAME=VALUE", help="For its constructor."
)
@click.option(
    "--mask",
    type=click.Choice(("allowed", "hidden", "additive")),
    help="With --as attention: the meaning of your mask: True where a query may look, True where it may not, or "
    "numbers added to the scores. Default: found by trying.",
)
@click.option("--pad-id", type=int, help="With --as encoder-decoder: the id of padding. Default: 0.")
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check (repeatable).")
@click.option(
    "--reference",
    metavar="NAME|FILE.py[:NAME]",
    help="Also compare values and gradients with this: an installed component, a function in NumPy, or a "
    "torch.nn.Module.",
)
@click.option("--brief", is_flag=True, help="Print failures and expected failures only.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@plugin_option
@device_option
def examination(plugins, device, **values: Any) -> None:
    """Find out whether TARGET is right: a component's name (or kind:name), package.module:Class, FILE.py or
    FILE.py:Class. A kind, such as norm, is all installed components of it, and no TARGET is all of every kind, but for
    what is wrong on purpose.

    It is built alone and inside small real models, and each check prints one line: pass, expected failure (the class
    says why the invariant does not hold), or fail, with what was seen, its consequence and a hint. The first
    line of a report with failures names the most likely cause. Exit status: 0 all is right, 1 a check failed, 2 it
    could not be checked.

    \b
    Examples:
      paddle-tfm plugin check rotary
      paddle-tfm plugin check norm:batch --only causal_in_training
      paddle-tfm plugin check my_norm.py:MyNorm --option eps=0.001
      paddle-tfm plugin check my_norm.py --reference my_norm_numpy.py
      paddle-tfm plugin check my_norm.py --reference rms
      paddle-tfm plugin check --as attention my_transformer.py:MultiHeadAttention
      paddle-tfm plugin check --as encoder-decoder my_transformer.py:Transformer --option num_layers=2
    """
    use_device(device or "cpu")
    from paddle_tfm.cli.plugin.examination import Request, examine_components, examine_ordinary

    wanted = Request(**values)
    wanted.require_sound()
    registry = create_registry(plugins)
    faulthandler.enable(2)  # a crash inside of Paddle names the user's line, and is not silent
    if wanted.as_kind is not None and wanted.target is not None:
        examine_ordinary(wanted, wanted.target, wanted.as_kind, registry)
    else:
        examine_components(wanted, registry)
