"""`paddle-tfm check RECIPE --no-kernels`: a step of each variant by kernels and by formulas."""

from __future__ import annotations

from collections.abc import Mapping

import click

from paddle_tfm.cli.common import console
from paddle_tfm.language import _
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.sweep.by_formulas import beside_formulas


def check_kernels(variants: Mapping[str, Plan]) -> None:
    """Print, for each variant, in what the two differ; exit 1 where that is more than rounding."""
    wrong = False
    for name, plan in variants.items():
        step = beside_formulas(plan)
        wrong |= not step.same
        times = step.seconds_by_formulas / step.seconds
        text = _(
            "loss {loss:.6f} by kernels, {by_formulas:.6f} by formulas; gradients differ by {gradient:.1e} (rounding: "
            "up to {rounding:.0e}); a step takes {now:,.0f} ms, by formulas {then:,.0f} ms, {times:.2f} × as long"
        ).format(
            loss=step.loss,
            by_formulas=step.loss_by_formulas,
            gradient=step.gradient,
            rounding=step.rounding,
            now=step.seconds * 1e3,
            then=step.seconds_by_formulas * 1e3,
            times=times,
        )
        head = _("[green]the same[/] {name}") if step.same else _("[red]differs[/] {name}")
        console().print(f"{head.format(name=name)}: {text}")
        calls = ", ".join(f"{kernel} {number}" for kernel, number in step.calls.most_common())
        calls = calls or _("none, since no kernel fits any")
        console().print(_("  calls by kernels: {calls}").format(calls=calls))
    if wrong:
        click.echo(_("`paddle-tfm plugin check kernel:NAME` examines a kernel alone"), err=True)
        raise click.exceptions.Exit(1)
