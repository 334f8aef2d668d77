"""`paddle-tfm check RECIPE --no-kernels`: a step of each variant by kernels and by formulas."""

from __future__ import annotations

from collections.abc import Mapping

import click

from paddle_tfm.cli.common import console
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.sweep.by_formulas import beside_formulas


def check_kernels(variants: Mapping[str, Plan]) -> None:
    """Print, for each variant, in what the two differ; exit 1 where that is more than rounding."""
    wrong = False
    for name, plan in variants.items():
        step = beside_formulas(plan)
        wrong |= not step.same
        times = step.seconds_by_formulas / step.seconds
        console().print(
            f"[{'green' if step.same else 'red'}]{'the same' if step.same else 'differs'}[/] {name}: "
            f"loss {step.loss:.6f} by kernels, {step.loss_by_formulas:.6f} by formulas; gradients differ by "
            f"{step.gradient:.1e} (rounding: up to {step.rounding:.0e}); a step takes {step.seconds * 1e3:,.0f} ms, "
            f"by formulas {step.seconds_by_formulas * 1e3:,.0f} ms, {times:.2f} × as long"
        )
        calls = ", ".join(f"{kernel} {number}" for kernel, number in step.calls.most_common())
        console().print(f"  calls by kernels: {calls or 'none, since no kernel fits any'}")
    if wrong:
        click.echo("`paddle-tfm plugin check kernel:NAME` examines a kernel alone", err=True)
        raise click.exceptions.Exit(1)
