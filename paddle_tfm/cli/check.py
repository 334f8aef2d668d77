"""`paddle-tfm check RECIPE`: all problems at once, nothing trained."""

from __future__ import annotations

import click

from paddle_tfm.cli.common import (
    console,
    create_registry,
    overrides_argument,
    plugin_option,
    recipe_argument,
    use_device,
)


@click.command(name="check")
@recipe_argument
@overrides_argument
@click.option("--no-step", is_flag=True, help="Leave out the training step that each variant takes on random tokens.")
@plugin_option
def command(recipe: str, overrides, no_step, plugins) -> None:
    """Find every problem of RECIPE: unknown keys and names, wrong options, components that do not fit together. Each
    variant's model is built once; it takes one training step on a few random tokens and decodes two. Its texts are read
    and encoded, unless they would have to be fetched. Nothing is trained or written.

    \b
    Examples:
      paddle-tfm check mine.yaml
      paddle-tfm check reverse model.position=rotary model.attention=linear
    """
    from rich.markup import escape

    from paddle_tfm.recipe import loading as recipes
    from paddle_tfm.recipe.equal import of
    from paddle_tfm.units import plural

    loaded = recipes.load(recipe, overrides)
    registry = create_registry(plugins)
    use_device("cpu")
    from paddle_tfm.sweep.check import check, check_texts, remarks

    plans = check(loaded, registry, step=not no_step, heads=True)
    of_texts = check_texts(plans)
    trained, variants = {plan.run.variant for plan in plans}, loaded.written_variants()
    sizes = len(trained) // len(variants)
    counts = [plural(len(variants), "variant"), *([plural(sizes, "size")] if sizes > 1 else [])]
    counts.append(plural(len(plans) // len(trained), "seed"))
    tune = loaded.tune()
    trials = f", each tuned by {tune.trials} trials" if tune else ""
    console().print(f"[green]{escape(loaded.source)} is sound[/]: {' × '.join(counts)}{trials}")
    budget, setting = of(loaded.data)
    solved = f"equal {budget}: {setting} of each variant but the baseline is solved when `run` begins"
    for sentence in [*remarks(plans), *of_texts, *([solved] if setting else [])]:
        console().print(f"[yellow]note:[/] {escape(sentence)}")
