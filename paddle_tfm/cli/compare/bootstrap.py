"""What `compare --bootstrap` does: two runs on draws of their test set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.cli.common import console, warn
from paddle_tfm.language import _
from paddle_tfm.tabular import ESSENTIAL, Column, Table

if TYPE_CHECKING:
    from paddle_tfm.comparison.bootstrap import Resampled
    from paddle_tfm.protocols import Metric
    from paddle_tfm.registry import Registry

NOTE = (
    "Paired bootstrap resampling (Koehn 2004). p is twice the share of resampled test sets on which A and B are "
    "equal or in the opposite order. It covers the choice of the test set, and not the chance in training: for "
    "that, train each variant with several seeds and compare those."
)


def resample(
    runs: Sequence[Path],
    metric: str | None,
    draws: int | None,
    out: Path | None,
    registry: Registry,
    form: str | None = None,
) -> None:
    """Two runs' predictions of one test set under paired bootstrap resampling, the first being the baseline; printed,
    and with `out` written there as `bootstrap.json`."""
    from paddle_tfm.runtime import load_paddle

    load_paddle()
    from dataclasses import asdict

    from paddle_tfm.comparison.bootstrap import DRAWS, SEED, paired_bootstrap, require_same_examples
    from paddle_tfm.comparison.runs.trained_from import beyond_one, origin_of
    from paddle_tfm.errors import UserError
    from paddle_tfm.files import json_text, write_whole
    from paddle_tfm.predictions import predictions_file, read_predictions
    from paddle_tfm.runs.folders import find_run
    from paddle_tfm.units import AT

    one, two = map(find_run, runs)
    metric, _at, test = (metric or "").partition(AT)
    baseline, other = (read_predictions(predictions_file(folder, test=test)) for folder in (one, two))
    if not baseline:
        text = _("{file}: must have one prediction or more")
        raise UserError(text.format(file=predictions_file(one, test=test)))
    require_same_examples(baseline, other, (str(one), str(two)))
    if sentence := beyond_one(origin_of(one), origin_of(two)):
        warn(_("they differ in more than one thing: {sentence}").format(sentence=sentence))
    metrics = {f"{name}{AT if test else ''}{test}": item for name, item in _metrics(one, metric, registry).items()}
    results = [paired_bootstrap(name, item, baseline, other, draws or DRAWS) for name, item in metrics.items()]
    facts: dict[str, object] = {"baseline": str(one), "other": str(two), "examples": len(baseline), "seed": SEED}
    facts["metrics"] = [asdict(result) for result in results]
    if form is None:
        examples = _("{number:,} test examples").format(number=len(baseline))
        console().print(f"A  {one}\nB  {two}\n{examples}", markup=False, soft_wrap=True)
    _show(results, metrics, form, facts)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / "bootstrap.json", json_text(facts), shared=True)
        if form is None:
            console().print(f"{_('numbers')}  {out / 'bootstrap.json'}", markup=False, soft_wrap=True)


def _metrics(folder: Path, option: str, registry: Registry) -> dict[str, Metric]:
    """All metrics of the run's recipe that texts suffice for; or the one that `--metric` names, with the recipe's
    options if the recipe has it."""
    from paddle_tfm.components import Spec
    from paddle_tfm.errors import UserError
    from paddle_tfm.recipe import loading as recipe
    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.recipe.plan import plan_run
    from paddle_tfm.train.evaluate import text_metrics

    run = recipe.load_single(folder / "recipe.yaml")
    specs: Sequence[object] = plan_run(run, registry).settings.evaluate.metrics
    if option:
        value = yaml_lines.value(option)
        specs = [spec for spec in specs if Spec.parse(spec).name == value] or [value]
    built = [(registry.build("metric", spec, "--metric"), spec) for spec in specs]
    metrics = {Spec.parse(spec).name: metric for metric, spec in built}
    if not (usable := text_metrics(metrics)):
        text = _(
            "{metrics}: computed from the model or its pieces, but predictions.tsv holds texts; take --metric "
            "exact_match, bleu or another that compares texts"
        )
        raise UserError(text.format(metrics=", ".join(metrics)))
    return usable


def _show(results: Sequence[Resampled], metrics: dict[str, Metric], form: str | None, facts: object) -> None:
    from paddle_tfm import units
    from paddle_tfm.cli.tables import emit

    emit(_table(results, metrics), form, facts)
    if form is not None:
        return
    for result in results:
        if result.signature:
            console().print(f"{units.metric_name(result.metric)}  {result.signature}", markup=False)
    console().print(f"[dim]{_(NOTE)}[/]")


def _table(results: Sequence[Resampled], metrics: dict[str, Metric]) -> Table[Resampled]:
    """A row a metric; the verdict and the difference stay the longest."""
    from paddle_tfm import units

    def number(heading: str, key: str, importance: int, text: Callable[[Resampled, str], str]) -> Column[Resampled]:
        def shown(row: Resampled) -> str:
            return text(row, metrics[row.metric].unit)

        return Column(heading, shown, lambda row: {key: getattr(row, key)}, importance, right=True)

    def ends(row: Resampled, unit: str) -> str:
        return _("{low} to {high}").format(low=units.signed(row.low, unit), high=units.signed(row.high, unit))

    return Table(
        [
            Column("metric", lambda row: units.metric_name(row.metric), lambda row: {"metric": row.metric}),
            number("A", "baseline", 80, lambda row, unit: units.text(row.baseline, unit)),
            number("B", "other", 79, lambda row, unit: units.text(row.other, unit)),
            number("B − A", "difference", ESSENTIAL, lambda row, unit: units.difference(row.difference, unit)),
            replace(number("95% interval", "low", 70, ends), values=lambda row: {"low": row.low, "high": row.high}),
            number("p", "p", 60, lambda row, unit: f"{row.p:.4f}"),
            number("draws", "draws", 10, lambda row, unit: f"{row.draws:,}"),
            Column("B is", lambda row: _(row.verdict), lambda row: {"verdict": row.verdict}),
        ],
        results,
    )
