"""`paddle-tfm compare DIR…`: finished runs side by side, or two of them on draws of their test set."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import console, count, create_registry, plugin_option

OTHERS = 2  # metrics in the terminal beside the deciding one; the page has all


@click.command(name="compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--metric", default=None, help="Which metric decides. Default: what the recipe calls best.")
@click.option("--baseline", default=None, help="The variant that the others are compared with.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where the figure and the page go. Default: the first DIR."
)
@click.option(
    "--bootstrap",
    is_flag=True,
    help="Take two runs, and see whether their test set suffices to tell them apart: paired bootstrap resampling of "
    "their predictions. --metric: that one only, also one that the recipe has not; --out: there goes bootstrap.json.",
)
@click.option("--draws", type=click.IntRange(min=1), metavar="N", help="With --bootstrap. Default: 10,000.")
@plugin_option
def command(folders, metric, baseline, out, bootstrap, draws, plugins) -> None:
    """A table, a figure and one self-contained HTML page of the finished runs in DIR...

    \b
    Examples:
      paddle-tfm compare runs/quickstart
      paddle-tfm compare runs/reverse runs/rms --metric token_error_rate --out runs/both
      paddle-tfm compare runs/a/default/seed-1 runs/b/default/seed-1 --bootstrap --metric bleu
    """
    from paddle_tfm.comparison.table import collect, compare, grouped
    from paddle_tfm.errors import UserError
    from paddle_tfm.recipe import yaml_lines

    if bootstrap:
        if len(folders) != 2 or baseline:
            raise UserError("--bootstrap takes two runs, RUN_A RUN_B, and no --baseline: that is the first")
        from paddle_tfm.cli.resample import resample

        resample(folders, metric, draws, out, create_registry(plugins))
        return
    if draws or plugins:
        raise UserError(f"{'--draws' if draws else '--plugin'} goes with --bootstrap")
    results = collect(folders)
    recipe = results[0].folder / "recipe.yaml"
    settings = yaml_lines.load_file(recipe)[0] if recipe.is_file() else {}
    metric = metric or (settings.get("evaluate") or {}).get("best", "loss")
    name = " + ".join(dict.fromkeys(result.results["recipe"] for result in results))
    baseline = baseline or _recorded_baseline(folders[0], set(grouped(results)))
    present(compare(results, name, out or folders[0], metric, baseline), console(), folders)


def _recorded_baseline(folder: Path, variants: set[str]) -> str | None:
    """The baseline of the comparison that was written at the end of the recipe."""
    import json

    file = folder / "comparison.json"
    try:
        baseline = json.loads(file.read_text("utf-8")).get("baseline")
    except (OSError, ValueError, AttributeError):
        return None
    return baseline if baseline in variants else None


def present(comparison, printer, folders=()) -> None:
    """Write the report, print the table, predictions right and wrong, and where everything is."""
    from rich.markup import escape
    from rich.table import Table

    from paddle_tfm.cli.progress import clock
    from paddle_tfm.comparison.columns import around
    from paddle_tfm.comparison.report import write
    from paddle_tfm.comparison.samples import samples
    from paddle_tfm.comparison.verdict import verdict
    from paddle_tfm.units import metric_name

    paths = write(comparison)
    several = len(comparison.rows) > 1
    others = [name for name in comparison.shown()[1:] if name != "loss"][:OTHERS]
    table = Table(title=f"{escape(comparison.name)}: {count(len(comparison.runs), 'run')}", title_justify="left")
    table.add_column("variant", no_wrap=True)
    table.add_column(metric_name(comparison.metric), justify="right", no_wrap=True)
    if several:
        table.add_column(f"against {escape(comparison.baseline)}", justify="right")
    for heading in (*map(metric_name, others), "parameters", "tokens/s", "time"):
        table.add_column(heading, justify="right")
    for row in comparison.rows:
        mean, _, spread = around(comparison, comparison.metric, row).partition(" ± ")
        cells = [
            escape(row.variant) + (f" [red]({row.diverged} diverged)[/]" if row.diverged else ""),
            f"{mean} [dim]± {spread}[/]" if spread else mean,
        ]
        if several:
            cells.append("baseline" if row.variant == comparison.baseline else _difference(comparison, row))
        cells += [comparison.text(name, row.mean.get(name)) for name in others]
        table.add_row(*cells, f"{row.parameters:,}", f"{row.tokens_per_second:,.0f}", clock(row.seconds))
    printer.print(table, soft_wrap=False)
    for metric, signature in comparison.signatures.items():
        printer.print(f"[dim]{escape(metric_name(metric))}  {escape(signature)}[/]")
    seeds = max(len(row.seeds) for row in comparison.rows)
    if seeds > 1:
        printer.print(
            f"[dim]mean ± standard deviation over {seeds} seeds; difference with its 95% interval, paired by seed[/]"
        )
    printer.print(f"[bold]{escape(verdict(comparison))}[/]")
    right, wrong = samples(comparison)
    if right or wrong:
        _predictions(printer, "right", right)
        _predictions(printer, "wrong", wrong)
    else:
        printer.print("no predictions are recorded: there is no test split, no metric needs them, or no run finished")
    printer.print(escape(f"figure  {paths['figure']}\nreport  {paths['page']}"))
    for folder in folders or (comparison.folder,):
        printer.print(escape(f"curves  paddle-tfm board {folder}"))


def _difference(comparison, row) -> str:
    from paddle_tfm.comparison.verdict import change

    difference = row.difference
    return "–" if difference is None else f"{change(comparison, difference)} {difference.verdict}"


def _predictions(printer, title: str, items: list[dict]) -> None:
    from rich.markup import escape
    from rich.text import Text

    if not items:
        printer.print(f"no {title} predictions are recorded")
        return
    printer.print(Text(f"{title}:", style="green" if title == "right" else "red"))
    for item in items:
        reference = "" if title == "right" else f"   should be {escape(item['reference'])}"
        texts = f"{escape(item['source'])}  →  {escape(item['hypothesis'])}{reference}"
        printer.print(f"  {texts}  [dim]({escape(item['variant'])})[/]")
