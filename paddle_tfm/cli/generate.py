"""`paddle-tfm generate RUN`: continue a text."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import create_registry, device_option, echo, note, plugin_option, use_device, warn
from paddle_tfm.cli.evaluate import checkpoint_option, engine_option
from paddle_tfm.errors import UserError
from paddle_tfm.units import in_shell


@click.command(name="generate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--prompt", default="", metavar="TEXT", help="What the text begins with. Default: nothing.")
@click.option(
    "--length",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="At most so many tokens after the prompt; they may be more than the model sees at once (model.max_length).",
)
@click.option(
    "--count", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="How many texts to write."
)
@click.option("--temperature", type=float, metavar="T", help="Below 1: more of the likely tokens; above 1: fewer.")
@click.option("--top-k", type=int, metavar="K", help="Only the K most probable tokens.")
@click.option("--top-p", type=float, metavar="P", help="Only the most probable tokens that hold P of the probability.")
@click.option("--seed", type=int, metavar="N", help="Another seed writes another text; the same seed, the same text.")
@click.option(
    "--search",
    metavar="SEARCH",
    help="sampling, greedy, or {name: sampling, top_p: 0.9}. Default: the recipe's. The four options above change its "
    "options.",
)
@engine_option
@checkpoint_option
@plugin_option
@device_option
def command(
    run, prompt, length, count, temperature, top_k, top_p, seed, search, engine, checkpoint, plugins, device
) -> None:
    """Continue a text with the decoder-only run in folder RUN (a recipe with model.encoder_layers: 0).

    The prompt and what follows appear as they come; an empty line separates several texts. A text ends after --length
    tokens, or where the model ends it.

    \b
    Examples:
      paddle-tfm generate runs/tiny-gpt/4-layers/seed-1
      paddle-tfm generate runs/tiny-gpt/4-layers/seed-1 --prompt "A man" --length 300
      paddle-tfm generate RUN --temperature 0.5 --top-k 20 --count 3 --seed 7
      paddle-tfm generate RUN --search greedy --prompt "Two dogs"
      paddle-tfm generate RUN --search greedy --engine ctranslate2 --length 2000
    """
    from paddle_tfm.recipe import yaml_lines

    registry = create_registry(plugins)
    device = use_device(device)
    from paddle_tfm.export.engine import open_generator
    from paddle_tfm.train.run import load_run

    loaded = load_run(run, registry, checkpoint, warn)
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    spec = yaml_lines.value(search) if search else loaded.settings.search
    search = _build_search(registry, spec, {name: value for name, value in options.items() if value is not None})
    if not loaded.is_decoder_only:
        raise UserError(
            f"{loaded.folder} is {loaded.settings.model.shape}: it reads a source; use "
            f"`paddle-tfm translate {in_shell(loaded.folder)}`"
        )
    decode = open_generator(loaded, engine, search, checkpoint, device, note)
    for number in range(count):
        if number:
            echo()
        _write_text(loaded, prompt, length, search, number, decode)


def _write_text(run, prompt: str, length: int, search, number: int, decode) -> None:
    """One text, as it comes; the prompt appears with the first of it, so that an error comes alone."""
    before = prompt

    def write(text: str) -> None:
        nonlocal before
        echo(before + text, nl=False)
        before = ""

    output = run.generate(prompt, length, search, number=number, on_text=write, decode=decode)
    if before:
        echo(before, nl=False)
    if not (prompt + output.text).endswith("\n"):
        echo()


def _build_search(registry, spec: object, options: dict[str, object]):
    """The search `spec` with these options instead of its own."""
    from paddle_tfm.components import Spec

    try:
        parsed = Spec.parse(spec)
    except ValueError as error:
        raise UserError(f"--search: {error}") from error
    known = registry.options("search", parsed.name)
    for name in options:
        if name not in known:
            raise UserError(
                f"--{name.replace('_', '-')}: the search '{parsed.name}' has no such option; choose one that has with "
                "--search, for instance --search sampling"
            )
    return registry.build("search", {"name": parsed.name, **parsed.options, **options}, "--search")
