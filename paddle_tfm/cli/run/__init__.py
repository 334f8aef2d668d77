"""`paddle-tfm run RECIPE`: a click group whose commands are the recipes."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import create_registry, device_option, overrides_argument, plugin_option
from paddle_tfm.cli.run.ranks import rank_options
from paddle_tfm.cli.tables import table_options
from paddle_tfm.cli.translated import translated
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, counted
from paddle_tfm.units import visible


class Recipes(click.Group):
    """One command for each shipped recipe; any other name is a recipe file."""

    def list_commands(self, context: click.Context) -> list[str]:
        from paddle_tfm.recipe.reading import shipped

        return sorted(shipped())

    def get_command(self, context: click.Context, name: str) -> click.Command:
        return translated(recipe_command(name))

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of every recipe, then the recipes."""
        click.Command.format_options(translated(recipe_command("RECIPE")), context, formatter)
        self.format_commands(context, formatter)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from paddle_tfm.recipe.reading import shipped
        from paddle_tfm.recipe.yaml_lines import load_file

        with formatter.section(_("Recipes")):
            files = sorted(shipped().items())
            formatter.write_dl([(name, _(str(load_file(file)[0].get("summary", "")))) for name, file in files])

    def shell_complete(self, context: click.Context, incomplete: str):
        from paddle_tfm.cli.common import complete_recipe

        return complete_recipe(context, None, incomplete)


@click.group(
    name="run",
    cls=Recipes,
    subcommand_metavar="RECIPE [a.b=value]... [OPTIONS]",
    options_metavar="",
    invoke_without_command=False,
)
def command() -> None:
    """Train every variant of RECIPE with every seed, then compare them.

    RECIPE is one of the names below or a file of yours. `paddle-tfm run RECIPE --help` says what it compares and how
    long it takes.

    a.b=value sets one setting, a.b=value,value compares several values of it: each combination is a variant, named by
    its values. In a recipe with variants or a grid, each of those is trained with each combination.

    \b
    A comma divides values, but not within brackets, braces and quotes:
      model.norm=layer,rms                                 two values
      "model.position=none,{name: shaw, clip: 4}"          one of two with an option
      "model.norm=layer,{encoder: batch, decoder: layer}"  one of two by place
      "evaluate.metrics=[bleu, chrf]"                      one value, which is a list
      "evaluate.metrics=[bleu],[bleu, chrf]"               two lists
      "model.position={name: chain, parts: [{name: shaw, clip: 4}, alibi]}"
      "summary='a, b'"                                     one text with a comma

    \b
    Examples:
      paddle-tfm run quickstart
      paddle-tfm run reverse model.norm=rms train.steps=500 --out runs/rms
      paddle-tfm run reverse model.norm=layer,rms,batch model.placement=pre,post --seeds 5
      paddle-tfm run mine.yaml model.dropout=0,0.1,0.3 --baseline 0.1
      paddle-tfm run reverse model.norm=layer,rms "seeds={at_most: 12, looks: [3, 5, 8, 12]}"
      paddle-tfm run mine.yaml --plugin my_norm.py --resume
      paddle-tfm run compare-norms --dry-run
      paddle-tfm run findings/warm-up --fast
      paddle-tfm run mine.yaml --nproc 2
      paddle-tfm run mine.yaml --nodes 2 --node 0 --address 10.0.0.1:29500
    """


class RecipeCommand(click.Command):
    """The command of a recipe, which is read when somebody asks for its help."""

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        self.help = _describe(str(self.name))
        super().format_help_text(context, formatter)

    def get_help(self, context: click.Context) -> str:
        return visible(super().get_help(context))


def recipe_command(name: str) -> click.Command:
    """The command that runs one recipe."""

    @click.command(name=name, cls=RecipeCommand)
    @overrides_argument
    @click.option(
        "--seeds",
        metavar="N|N,N,…",
        help="A number (seeds 1 to N) or a list; `seeds=[7]` is seed 7 alone. Default: the recipe's.",
    )
    @click.option(
        "--baseline",
        metavar="VARIANT",
        shell_complete=_complete_variant,
        help="The variant that the others are compared with. Default: the recipe's, or the first.",
    )
    @click.option(
        "--dry-run",
        is_flag=True,
        help="Estimate the cost of the runs (tokens, time, memory) from 20 steps of each variant, and the "
        "smallest difference that their seeds can detect. Nothing is trained or written; missing data is "
        "fetched.",
    )
    @click.option("--out", type=click.Path(path_type=Path), help="The folder for runs. Default: runs/<recipe>.")
    @click.option(
        "--resume", is_flag=True, help="Continue where an interrupted run stopped; finished runs are skipped."
    )
    @click.option(
        "--fast",
        is_flag=True,
        help="Use the recipe's smaller budget (`fast:`), in runs/<recipe>-fast. Claims get no verdict.",
    )
    @click.option(
        "--no-kernels",
        is_flag=True,
        help="Train and search by formulas alone (`train.kernels=false`): slower, and the same up to rounding.",
    )
    @plugin_option
    @device_option
    @click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=None,
        help="Runs trained side by side, each with its share of the threads. Default: as many as there are cores; 1 on "
        "a GPU.",
    )
    @click.option(
        "--executor",
        default=None,
        metavar="NAME|{name: NAME, …}",
        shell_complete=_complete_executor,
        help="Who trains the runs, and where (`paddle-tfm ls components executor`). Default: this machine.",
    )
    @click.option(
        "--cell",
        default=None,
        metavar="VARIANT/seed-N",
        help="Train this run only, and compare nothing. For schedulers that distribute the runs of a recipe.",
    )
    @click.option(
        "--of-sweep",
        is_flag=True,
        help="With --cell, set by executors: refuse to train where the sweep's folder (--out) is not there.",
    )
    @rank_options
    @click.option("--strict", is_flag=True, help="A listener that fails ends the training.")
    @table_options
    def run(overrides, no_kernels, **options) -> None:
        from paddle_tfm.cli.run.request import Request
        from paddle_tfm.cli.run.training import train

        overrides = (*overrides, *["train.kernels=false"] * no_kernels)
        train(Request(name, overrides=overrides, **options))

    return run


def _complete_variant(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The variants of the recipe on the command line."""
    from paddle_tfm.recipe import loading

    # Behind an option without its value click leaves arguments unread.
    overrides = context.params.get("overrides") or [text for text in context.args if "=" in text]
    try:
        recipe = loading.load(context.info_name or "", overrides)
    except UserError:
        return []
    return [name for name in recipe.written_variants() if name.startswith(incomplete)]


def _complete_executor(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in create_registry().names("executor") if name.startswith(incomplete)]


def _describe(name: str) -> str:
    """What the recipe compares and how long it takes."""
    from paddle_tfm.recipe import loading as recipes
    from paddle_tfm.recipe.sections.ladder import sizes_of
    from paddle_tfm.recipe.sections.seeds import all_seeds

    try:
        recipe = recipes.load(name)
        variants, plan, tune = list(recipe.written_variants()), recipe.seed_plan(), recipe.tune()
        seeds = all_seeds(plan or list(recipe.data.get("seeds") or []))
    except (UserError, AttributeError, TypeError, ValueError):
        return _("A recipe with problems: `paddle-tfm check` lists them.")
    lines = [_("{sentence}.").format(sentence=_(recipe.data.get("summary", ""))), "", "\b"]
    if len(variants) > 1:
        number = counted(len(variants), "variant")
        lines.append(_("Compares {variants}: {names}").format(variants=number, names=", ".join(variants)))
        if recipe.data.get("baseline"):
            lines.append(_("Baseline: {name}").format(name=recipe.data["baseline"]))
    if sizes := sizes_of(recipe.data):
        lines.append(_("At {number} sizes: {sizes}").format(number=len(sizes), sizes=", ".join(sizes)))
    at_each = _("{number} a variant at each size") if sizes else _("{number} a variant")
    most, total = _("at most ") if plan else "", len(recipe.variants()) * len(seeds)
    each = at_each.format(number=most + counted(len(seeds), "seed"))
    lines.append(_("Runs: {runs} ({each})").format(runs=f"{most}{total}", each=each))
    if tune:
        again = _(", and as many again where the space is widened") if tune.widen else ""
        trials = at_each.format(number=counted(tune.trials, "trial"))
        lines.append(_("Tuning: {trials} before{again}").format(trials=trials, again=again))
    faster = _("; with --fast, minutes") if recipe.data.get("fast") else ""
    lines.append(_("Takes: {time}{faster}").format(time=_(recipe.data.get("duration") or "unknown"), faster=faster))
    if claims := recipe.data.get("claims"):
        said = _("Claims: {number}, judged at the end: reproduced, not reproduced or undetermined")
        lines.append(said.format(number=len(claims)))
    lines += ["", "\b", _("Examples (`paddle-tfm run --help` says how values are written and quoted):")]
    lines += [f"  paddle-tfm run {name} train.steps=100 --out runs/try"]
    lines += [f"  paddle-tfm run {name} model.dropout=0,0.1 --seeds 3 --dry-run"]
    return "\n".join(lines)
