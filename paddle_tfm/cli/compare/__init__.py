"""`paddle-tfm compare DIR…`: finished runs side by side, or two of them on draws of their test set."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import console, create_registry, plugin_option, warn
from paddle_tfm.cli.tables import table_options
from paddle_tfm.language import _, english


@click.command(name="compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--metric", default=None, help="The metric that decides. Default: the recipe's `evaluate.best`.")
@click.option("--baseline", default=None, help="The variant that the others are compared with.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The folder for the figure and the page. Default: the first DIR."
)
@click.option(
    "--bootstrap",
    is_flag=True,
    help="Compare two runs by paired bootstrap resampling of their predictions: is the test set large enough to "
    "tell them apart? --metric chooses one metric, also one that the recipe does not have; --out is the "
    "folder for bootstrap.json.",
)
@click.option("--draws", type=click.IntRange(1, 1_000_000), metavar="N", help="With --bootstrap. Default: 10,000.")
@table_options
@plugin_option
def command(folders, metric, baseline, out, bootstrap, draws, plugins, form) -> None:
    """A table, a figure and one self-contained HTML page of the finished runs in DIR...

    The folders may be anywhere, each a run or a folder of several. Variants are compared if they were scored on the
    same texts, by a metric of the same signature; the others are named, with the reason. So is every difference beyond
    the variants of their recipes, or beyond a single setting.

    Of two runs, or two variants, it first lists all differences: settings with the defaults of components, plugins and
    their versions, texts, Paddle's build and the machine, and whether these can change the last bits of numbers. Then
    it names what else may explain a difference of scores: parameters, operations, tokens, time and memory of training,
    time of decoding. For more variants see the page or --json (sections: gaps, costs).

    A narrow terminal shows the columns that matter most; the report has all. --json prints what comparison.json holds,
    --csv a line a variant; below it, after an empty line each, the matrix and the effects of a grid, or the models of
    `ablate`.

    \b
    Examples:
      paddle-tfm compare runs/quickstart
      paddle-tfm compare runs/reverse runs/rms --metric token_error_rate --out runs/both
      paddle-tfm compare runs/quickstart/pre/seed-1 runs/quickstart/post/seed-1
      paddle-tfm compare runs/a/default/seed-1 runs/b/default/seed-1 --bootstrap --metric bleu
    """
    from paddle_tfm.errors import UserError

    for folder in folders:
        _require_finished(folder)
    if bootstrap:
        if len(folders) != 2 or baseline:
            raise UserError(_("--bootstrap takes two runs, RUN_A RUN_B, and no --baseline: that is the first"))
        from paddle_tfm.cli.compare.bootstrap import resample

        resample(folders, metric, draws, out, create_registry(plugins), form)
        return
    if draws:
        raise UserError(_("--draws goes with --bootstrap"))
    from paddle_tfm.comparison.runs.comparable import reasons

    comparison = comparison_of(folders, out, metric, baseline)
    if len(comparison.rows) > 1 and len(comparison.comparable) == 1:
        text = _("nothing can be compared: {reason}; `paddle-tfm report` shows each alone")
        raise UserError(text.format(reason=reasons(comparison.obstacles)))
    present(comparison, console(), create_registry(plugins), folders, form)


def _require_finished(folder: Path) -> None:
    """Raises UserError where it is no folder, such as a recipe, or the folder of a run that has not ended."""
    from paddle_tfm.errors import UserError
    from paddle_tfm.recipe.reading import shipped
    from paddle_tfm.runs.forms import IDENTITY, RESULTS
    from paddle_tfm.units import in_shell

    if not folder.is_dir():
        is_recipe = folder.is_file() or str(folder) in shipped()
        what = _("is a recipe, whose variants `paddle-tfm run` trains and compares")
        what = what if is_recipe else _("no such folder")
        text = _("{folder}: {what}; `compare` takes the folders of finished runs, which `ls runs` shows")
        raise UserError(text.format(folder=folder, what=what))
    if (folder / IDENTITY).exists() and not (folder / RESULTS).exists():
        text = _(
            "{folder}: half a run: it has no {file}; `paddle-tfm check {in_shell}` says where --resume continues it"
        )
        raise UserError(text.format(folder=folder, file=RESULTS, in_shell=in_shell(folder)))


def comparison_of(folders, out: Path | None = None, metric: str | None = None, baseline: str | None = None):
    """The comparison of all finished runs in `folders`, and a warning of each whose weights are damaged.

    Raises:
        UserError: there is no finished run, or none can be compared so.
    """
    from paddle_tfm.comparison.recorded_runs import compare_recorded
    from paddle_tfm.runs.manifest import damage_of_best
    from paddle_tfm.runtime import load_paddle

    comparison = compare_recorded(folders, out, metric, baseline, warn)
    for run in (*comparison.runs, *comparison.smaller):
        if sentence := damage_of_best(run.folder):
            warn(_("{sentence}; the scores that are compared were taken before").format(sentence=sentence))
    if len(comparison.rows) > 1:
        load_paddle()  # quietly: the defaults of their components are compared, which their classes know
    return comparison


def present(comparison, printer, registry, folders=(), form: str | None = None) -> None:
    """Write the report, print the table, what sections say, predictions right and wrong, and where everything is; with
    a `form`, the numbers alone."""
    from rich.markup import escape
    from rich.text import Text

    from paddle_tfm.cli.tables import emit, print_table
    from paddle_tfm.comparison.columns import notes, table
    from paddle_tfm.comparison.gaps import confounds
    from paddle_tfm.comparison.report.outputs import samples
    from paddle_tfm.comparison.report.report import Report
    from paddle_tfm.comparison.report.sections.ablation import ablation_tables
    from paddle_tfm.comparison.report.sections.gaps import gaps_of_two
    from paddle_tfm.comparison.verdict import verdict
    from paddle_tfm.units import in_shell

    report = Report(comparison, registry, warn)
    try:
        paths = report.write()
    except OSError as error:  # a folder for reading only
        warn(
            _("{folder}: the report is not written: {why}; --out DIR writes it elsewhere").format(
                folder=comparison.folder, why=error.strerror
            )
        )
        paths = {}
    if form is not None:
        with english():
            emit([table(comparison), *ablation_tables(report.facts).values()], form, report.data())
        return
    elsewhere = [_("in the report")] if paths else []
    if len(report.facts.groups) == 2:
        differing = gaps_of_two(report.facts)
        if differing.rows:
            print_table(differing, *elsewhere)
        else:
            printer.print(Text(f"{differing.title}: {_('nothing')}"), soft_wrap=True)
        for cost in confounds(*report.facts.sides()):
            printer.print(Text(cost.sentence, style="yellow"), soft_wrap=True)
        printer.print()
    print_table(table(comparison), *elsewhere)
    for sentence in notes(comparison):
        printer.print(f"[dim]{escape(sentence)}[/]")
    printer.print(f"[bold]{escape(verdict(comparison))}[/]")
    for sentence in comparison.caveats():
        printer.print(f"[yellow]{escape(sentence)}[/]")
    for each in ablation_tables(report.facts).values():
        printer.print()
        print_table(each, *elsewhere)
    for line in report.lines():
        printer.print(Text(line), soft_wrap=True)
    right, wrong = samples(comparison)
    if right or wrong:
        _predictions(printer, True, right)
        _predictions(printer, False, wrong)
    else:
        nothing = _("no predictions are recorded: there is no test split, no metric needs them, or no run finished")
        printer.print(nothing)
    # A terminal breaks a long path by itself, and can copy it whole.
    for what, key in ((_("figure"), "figure"), (_("report"), "page")):
        if key in paths:
            printer.print(Text(f"{what}  {paths[key]}"), soft_wrap=True)
    for folder in folders or (comparison.folder,):
        printer.print(Text(f"{_('curves')}  paddle-tfm board {in_shell(folder)}"), soft_wrap=True)


def _predictions(printer, right: bool, items) -> None:
    from rich.markup import escape
    from rich.text import Text

    if not items:
        none = _("no right predictions are recorded") if right else _("no wrong predictions are recorded")
        printer.print(none)
        return
    printer.print(Text(_("right:") if right else _("wrong:"), style="green" if right else "red"))
    for variant, item in items:
        reference = "" if right else f"   {_('should be')} {escape(' | '.join(item.references))}"
        texts = f"{escape(item.source)}  →  {escape(item.hypothesis)}{reference}"
        printer.print(f"  {texts}  [dim]({escape(variant)})[/]")
