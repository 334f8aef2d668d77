"""What `compare --bootstrap` does: two runs on draws of their test set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.cli.common import console

if TYPE_CHECKING:
    from paddle_tfm.comparison.bootstrap import Resampled
    from paddle_tfm.protocols import Metric
    from paddle_tfm.registry import Registry

NOTE = (
    "Paired bootstrap resampling (Koehn 2004). p is twice the share of draws of the test set on which A and B are even "
    "or in the other order. It says how far another test set could move the difference, and nothing of how far another "
    "training could: for that, train each variant with several seeds and compare those."
)


def resample(runs: Sequence[Path], metric: str | None, draws: int | None, out: Path | None, registry: Registry) -> None:
    """Two runs' predictions of one test set under paired bootstrap resampling, the first being the baseline; printed,
    and with `out` written there as `bootstrap.json`."""
    from paddle_tfm.runtime import load_paddle

    load_paddle()
    from dataclasses import asdict

    from paddle_tfm.comparison.bootstrap import DRAWS, SEED, paired_bootstrap, require_same_examples
    from paddle_tfm.files import json_text, write_whole
    from paddle_tfm.predictions import predictions_file, read_predictions
    from paddle_tfm.train.run import find_run

    one, two = map(find_run, runs)
    baseline, other = (read_predictions(predictions_file(folder)) for folder in (one, two))
    require_same_examples(baseline, other, (str(one), str(two)))
    metrics = _metrics(one, metric, registry)
    results = [paired_bootstrap(name, item, baseline, other, draws or DRAWS) for name, item in metrics.items()]
    console().print(f"A  {one}\nB  {two}\n{len(baseline):,} test examples", markup=False)
    _show(results, metrics)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        facts = {"baseline": str(one), "other": str(two), "examples": len(baseline), "seed": SEED}
        write_whole(out / "bootstrap.json", json_text(facts | {"metrics": [asdict(result) for result in results]}))
        console().print(f"numbers  {out / 'bootstrap.json'}", markup=False)


def _metrics(folder: Path, option: str | None, registry: Registry) -> dict[str, Metric]:
    """All metrics of the run's recipe that texts suffice for; or the one that `--metric` names, with the recipe's
    options if the recipe has it."""
    from paddle_tfm.components import Spec
    from paddle_tfm.errors import UserError
    from paddle_tfm.recipe import loading as recipe
    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.recipe.plan import plan_run
    from paddle_tfm.train.evaluate import text_metrics

    (run,) = recipe.load(str(folder / "recipe.yaml")).runs()
    specs: Sequence[object] = plan_run(run, registry).settings.evaluate.metrics
    if option is not None:
        value = yaml_lines.value(option)
        specs = [spec for spec in specs if Spec.parse(spec).name == value] or [value]
    built = [(registry.build("metric", spec, "--metric"), spec) for spec in specs]
    metrics = {Spec.parse(spec).name: metric for metric, spec in built}
    if not (usable := text_metrics(metrics)):
        need = "needs" if len(metrics) == 1 else "need"
        raise UserError(
            f"{', '.join(metrics)} {need} the model or its pieces, but predictions.tsv holds texts; take --metric "
            "exact_match, bleu or another that compares texts"
        )
    return usable


def _show(results: Sequence[Resampled], metrics: dict[str, Metric]) -> None:
    from rich.table import Table

    from paddle_tfm import units

    table = Table("metric")
    for heading in ("A", "B", "B − A", "95% interval", "p", "draws"):
        table.add_column(heading, justify="right")
    table.add_column("B is")
    for result in results:
        unit, name = metrics[result.metric].unit, units.metric_name(result.metric)
        low, high = units.signed(result.low, unit), units.signed(result.high, unit)
        values = (
            units.text(result.baseline, unit),
            units.text(result.other, unit),
            units.difference(result.difference, unit),
            f"{low} to {high}",
        )
        table.add_row(name, *values, f"{result.p:.4f}", f"{result.draws:,}", result.verdict)
    console().print(table, soft_wrap=False)
    for result in results:
        if result.signature:
            console().print(f"{units.metric_name(result.metric)}  {result.signature}", markup=False)
    console().print(f"[dim]{NOTE}[/]")
