"""`paddle-tfm check RECIPE|RUN`: all problems of a recipe at once, or of a run; or whether a recipe resumes exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from paddle_tfm.cli.common import (
    complete_recipe,
    console,
    create_registry,
    device_option,
    overrides_argument,
    plugin_option,
    use_device,
)
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, counted

RECIPE, RESUME, RUN = "RECIPE", "RECIPE --resume", "RUN"  # the three uses
USES = {  # option → the uses that it belongs to
    "--no-step": (RECIPE,),
    "--no-kernels": (RECIPE,),
    "--cell": (RESUME,),
    "--without-data": (RUN,),
    "--json": (RUN,),
    "--device": (RESUME, RUN),
}


@click.command(name="check")
@click.argument("recipe", metavar="RECIPE|RUN", shell_complete=complete_recipe)
@overrides_argument
@click.option("--no-step", is_flag=True, help="Leave out the training step that each variant takes on random tokens.")
@click.option(
    "--no-kernels",
    is_flag=True,
    help="Take a training step by kernels and by formulas, and compare numbers and time.",
)
@click.option("--resume", is_flag=True, help="Prove that RECIPE, with its plugins, resumes to the same bits.")
@click.option("--cell", metavar="VARIANT/seed-N", help="With --resume: which run of the recipe. Default: the first.")
@click.option(
    "--without-data", is_flag=True, help="For RUN: do not read its texts (large ones, or on another machine)."
)
@click.option("--json", "as_json", is_flag=True, help="For RUN: as JSON, for programs.")
@plugin_option
@device_option
def command(recipe: str, overrides, no_step, no_kernels, resume, cell, without_data, as_json, plugins, device) -> None:
    """Find every problem of RECIPE: unknown keys and names, wrong options, components that do not fit together. Each
    variant's model is built once; it takes one training step on a few random tokens and decodes two. Its texts are read
    and encoded, unless they would have to be fetched. Nothing is trained or written.

    RECIPE --no-kernels also takes a step of each variant by the kernels that are in use, and the same by the formulas
    alone, on as many random tokens as a batch has.

    RECIPE --resume proves that a run of it resumes exactly, with the plugins that it uses: it is trained in one go, 24
    steps at most, and trained again, killed (SIGKILL) between two checkpoints and resumed. All parameters, the
    optimizer's state, metrics.jsonl, predictions and results are compared bit by bit, and what differs is named: a
    component that keeps numbers between steps outside of its parameters and buffers, or draws random numbers from a
    generator of its own, is not resumed. Register such numbers with `register_buffer`, and draw by
    `paddle_tfm.randomness`.

    RUN, the folder of a run or of several, is checked for being whole: each file of its checkpoints beside the SHA-256
    that was saved with it, its logs line by line; whether recipe, plugins, Paddle and texts are those that it was
    trained with; and where `run … --resume` would continue. What is damaged is passed over then for the checkpoint
    before it; what was trained with other code or texts is loaded with a warning, and never resumed. Nothing is
    written.

    If the loss or the gradient of RUN became NaN or infinite, that step is done again, forward and backward: shown are
    the first layer whose output is not finite, the layers before it with the largest value of each, and the sentences
    of the batch. RUN/checkpoints/diverged keeps what that takes.

    \b
    Of RUN each line begins with:
      ok    as it was saved
      note  worth knowing; nothing is lost by it
      bad   damaged, missing or changed: the sentence names the file

    Exit status: 0 all is right; 1 something of RUN is bad, --resume gave other bits, or --no-kernels other numbers; 2 a
    problem of the recipe, or there is nothing that can be checked.

    \b
    Examples:
      paddle-tfm check mine.yaml
      paddle-tfm check reverse model.position=rotary model.attention=linear
      paddle-tfm check quickstart --no-kernels
      paddle-tfm check mine.yaml --plugin my_norm.py --resume
      paddle-tfm check compare-norms --resume --cell batch/seed-1
      paddle-tfm check runs/reverse/default/seed-1
      paddle-tfm check runs/compare-norms --without-data
      paddle-tfm check runs/mine --plugin my_norm.py --json
    """
    use = RUN if _is_folder(recipe) else RESUME if resume else RECIPE
    options = {
        "--no-step": no_step,
        "--no-kernels": no_kernels,
        "--cell": cell,
        "--without-data": without_data,
        "--json": as_json,
    }
    _require_sound(use, recipe, overrides, resume, {**options, "--device": device})
    registry = create_registry(plugins)
    if use == RUN:
        from paddle_tfm.cli.check.finished import check_runs

        use_device(device)
        check_runs(Path(recipe), registry, not without_data, as_json)
    elif use == RESUME:
        from paddle_tfm.cli.check.resume import check_resume

        check_resume(recipe, overrides, cell, registry, plugins, device)
    else:
        use_device("cpu")
        _check_recipe(recipe, overrides, registry, not no_step, no_kernels)


def _is_folder(name: str) -> bool:
    """Whether it is a folder, and no recipe that ships and is called like one."""
    from paddle_tfm.recipe.reading import shipped

    return name not in shipped() and Path(name).is_dir()


def _require_sound(use: str, name: str, overrides: Sequence[str], resume: bool, options: Mapping[str, object]) -> None:
    """Raises UserError where a word or an option belongs to another use, or two recipes or folders are named."""
    from paddle_tfm.recipe.reading import shipped

    if use == RUN and resume:
        text = _(
            "--resume proves that a recipe resumes, but {name} is a folder; without it `check` says where its runs "
            "would continue"
        )
        raise UserError(text.format(name=name))
    for word in overrides:
        if "=" not in word and (word in shipped() or Path(word).exists()):
            text = _("{name} {word}: check takes one recipe, or one folder; `compare A B` takes two runs")
            raise UserError(text.format(name=name, word=word))
    if use == RUN and overrides:
        text = _("{setting}: is for a recipe, but {name} is a folder of what is trained already")
        raise UserError(text.format(setting=overrides[0], name=name))
    for option, uses in USES.items():
        if options[option] and use not in uses:
            belongs = _(" and ").join(f"`check {each}`" for each in uses)
            text = _("{option} belongs to {uses}, not to `check {use}`")
            raise UserError(text.format(option=option, uses=belongs, use=use))


def _check_recipe(recipe: str, overrides, registry, step: bool, no_kernels: bool) -> None:
    from rich.markup import escape

    from paddle_tfm.recipe import loading as recipes
    from paddle_tfm.recipe.sections.equal import of
    from paddle_tfm.sweep.check import check, check_texts, remarks
    from paddle_tfm.train.start import preview

    loaded = recipes.load(recipe, overrides)
    plans = check(loaded, registry, step=step, heads=True)
    of_texts = check_texts(plans)
    trained, variants = {plan.run.variant for plan in plans}, loaded.written_variants()
    sizes = len(trained) // len(variants)
    counts = [counted(len(variants), "variant"), *([counted(sizes, "size")] if sizes > 1 else [])]
    counts.append(counted(len(plans) // len(trained), "seed"))
    tune = loaded.tune()
    trials = _(", each tuned by {number} trials").format(number=tune.trials) if tune else ""
    text = _("[green]{recipe} is sound[/]: {counts}{trials}")
    console().print(text.format(recipe=escape(loaded.source), counts=" × ".join(counts), trials=trials))
    budget, setting = of(loaded.data)
    solved = _("equal {budget}: {setting} of each variant but the baseline is solved when `run` begins")
    solved = solved.format(budget=budget, setting=setting)
    begins = [
        f"{variant} " + "; ".join(begun.sentences())
        for variant, plan in {plan.run.variant: plan for plan in plans}.items()
        if (begun := preview(plan))
    ]
    for sentence in [*remarks(plans), *of_texts, *begins, *([solved] if setting else [])]:
        console().print(_("[yellow]note:[/] {sentence}").format(sentence=escape(sentence)))
    if no_kernels:
        from paddle_tfm.cli.check.kernels import check_kernels

        check_kernels({plan.run.variant: plan for plan in plans})
