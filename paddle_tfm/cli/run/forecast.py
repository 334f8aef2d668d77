"""`run --dry-run`: what the runs of a recipe will cost, by the first steps of each variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_tfm.cli.common import console, note
from paddle_tfm.language import _, counted
from paddle_tfm.units import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddle_tfm.recipe.expansion import Recipe, RunSpec
    from paddle_tfm.registry import Registry
    from paddle_tfm.sweep.probe import Probe
    from paddle_tfm.tabular import Table


def probed(recipe: Recipe, registry: Registry, at_once: int) -> tuple[Recipe, list[Probe]]:
    """What a run of each variant costs, after everything that is wrong with the recipe was said; and the recipe, with
    what was solved for its variants (`equal`)."""
    from paddle_tfm.recipe.sections.equal import of
    from paddle_tfm.sweep.check import check
    from paddle_tfm.sweep.equal import equalized
    from paddle_tfm.sweep.probe import STEPS, probes

    plans = {plan.run.variant: plan for plan in reversed(check(recipe, registry))}
    if of(recipe.data).setting:
        recipe, sentences = equalized(recipe, plans, registry, None, at_once)
        for sentence in sentences:
            note(sentence)
        plans = {plan.run.variant: plan for plan in reversed(check(recipe, registry))}
    plans = {name: plans[name] for name in recipe.variants()}
    note(_("Taking {steps} steps of {variants} …").format(steps=STEPS, variants=counted(len(plans), "variant")))
    return recipe, list(probes(plans.values(), registry, at_once))


def show(
    measured: Sequence[Probe],
    runs: Sequence[RunSpec],
    at_once: int,
    form: str | None,
    power: Table | None,
    most: bool = False,
) -> None:
    """A line a variant, then all of it, and what it can see. `most`: there may be fewer runs, as seeds are added while
    they are needed."""
    from paddle_tfm.cli.tables import emit
    from paddle_tfm.sweep.overview import duration

    by_name = {probe.variant: probe for probe in measured}
    each = [by_name[run.variant].seconds(run.steps, tested=not run.is_trial) for run in runs]
    seconds = duration(each, at_once)
    tokens = sum(by_name[run.variant].tokens * run.steps for run in runs)
    table = _table(measured, runs)
    if form is not None:
        whole = {"runs": len(runs), "at_once": at_once, "tokens": round(tokens), "seconds": round(seconds, 1)}
        emit(table, form, {**whole, "variants": table.records(), "sees": power.records() if power else []})
        return
    emit(table)
    said = _(
        "{runs}, {at_once} at a time: {tokens} tokens of training, about {time} on this machine. Nothing was trained "
        "or written."
    )
    number = f"{_('At most ') if most else ''}{counted(len(runs), 'run')}"
    console().print(said.format(runs=number, at_once=at_once, tokens=f"{tokens:,.0f}", time=clock(seconds)))
    if power is not None:
        console().print()
        emit(power)


def show_tuning(recipe: Recipe, form: str | None) -> None:
    """How many of the runs are trials, and how many more there may be; for people."""
    if (tune := recipe.tune()) is None or form is not None:
        return
    each = sum(tune.left(rung, tune.trials) for rung in range(len(tune.rungs(1))))
    text = _("Among them {number} trials of each variant").format(number=tune.trials)
    if tune.halving:
        halved = _(", halved: {runs}, most of them with fewer steps")
        text += halved.format(runs=counted(each, "run"))
    if tune.widen:
        number = each * len(recipe.variants())
        runs = counted(number, "run") if tune.halving else counted(number, "trial")
        once, often = (
            _("; {runs} more where the space is widened"),
            _("; {times} times {runs} more where the space is widened"),
        )
        text += (often if tune.widen > 1 else once).format(times=tune.widen, runs=runs)
    console().print(_("{sentence}.").format(sentence=text))


def _table(measured: Sequence[Probe], runs: Sequence[RunSpec]) -> Table:
    from paddle_tfm.tabular import Table, column

    rows = [
        {
            "variant": probe.variant,
            "runs": sum(run.variant == probe.variant for run in runs),
            "parameters": probe.parameters,
            "tokens": round(probe.tokens * probe.steps),
            "seconds": round(probe.seconds(), 1),
            "memory_mib": None if probe.memory is None else round(probe.memory / 2**20, 1),
        }
        for probe in measured
    ]
    columns = [
        column("variant", style="cyan"),
        column("runs", right=True),
        column("parameters", text="{:,}".format, right=True),
        column("tokens", "tokens a run", "{:,}".format, right=True),
        column("seconds", "time a run", clock, right=True),
        column("memory_mib", "memory of tensors", _mebibytes, 50, right=True),
    ]
    return Table(columns, rows)


def _mebibytes(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f} MiB" if value >= 10 else f"{value:.1f} MiB"
