"""`paddle-tfm check RECIPE --no-kernels`: a step of each variant by kernels and by formulas, whether numbers agree, and
how much longer it takes."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import click
import numpy as np
from paddle import Tensor

from paddle_tfm.cli.common import console
from paddle_tfm.data.batches import Batch, collate
from paddle_tfm.kernels import AnyKernel, Call
from paddle_tfm.language import _
from paddle_tfm.model.build import build
from paddle_tfm.model.by_path import prepare
from paddle_tfm.model.size import trained_parameters
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.sweep.first_step import random_example
from paddle_tfm.train.step import Gradients

VOCABULARY, LONGEST = 1_000, 24  # words on both sides; tokens of a sentence
ROUNDS = 5  # of each way, in turn, after one that is not counted
ROUNDING = {"float32": 1e-4, "bfloat16": 5e-2}  # of products → what gradients may differ by, relative


class Beside(NamedTuple):
    """A step both ways: the losses, ‖difference‖ / ‖gradient by formulas‖ over all parameters, what of it rounding
    explains, the seconds of each, medians, and how often each kernel computed in one."""

    loss: float
    loss_by_formulas: float
    gradient: float
    rounding: float
    seconds: float
    seconds_by_formulas: float
    calls: Counter[str]

    @property
    def same(self) -> bool:
        """Whether the numbers are the same up to rounding."""
        return self.gradient <= self.rounding and abs(self.loss - self.loss_by_formulas) <= self.rounding


class _Counted:
    """A kernel, and how often it computes."""

    def __init__(self, kernel: AnyKernel, name: str, calls: Counter[str]):
        self.fits, self.kernel, self.name, self.calls = kernel.fits, kernel, name, calls

    def run(self, call: Call) -> Any:
        self.calls[self.name] += 1
        return self.kernel.run(call)


def beside_formulas(plan: Plan) -> Beside:
    """A step of forward, loss and backward on random tokens, as many as a batch of the recipe has."""
    settings, seed = plan.settings, plan.run.seed
    model = prepare(build(plan.sound_model, VOCABULARY, VOCABULARY, seed), plan.settings.train)
    model.train()
    step, batch = Gradients(model, trained_parameters(model), settings.train, seed), _batch(plan)
    calls: Counter[str] = Counter()
    planned = plan.sound_model.kernels
    kernels = {of: _Counted(kernel, planned[of].name, calls) for of, kernel in model.kernels.items()}
    losses, gradients = {}, {}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _round in range(ROUNDS + 1):
        for by_kernels in seconds:
            model.kernels = kernels if by_kernels else {}
            step.clear()
            if by_kernels:
                calls.clear()
            begin = time.perf_counter()
            losses[by_kernels] = step.backward(1, [batch]).loss
            seconds[by_kernels].append(time.perf_counter() - begin)
            gradients[by_kernels] = [_array(parameter) for parameter in step.parameters]
    difference = sum(float(np.square(a - b).sum()) for a, b in zip(gradients[True], gradients[False]))
    whole = sum(float(np.square(b).sum()) for b in gradients[False])
    fast, slow = (statistics.median(seconds[by_kernels][1:]) for by_kernels in (True, False))
    relative = (difference / whole) ** 0.5 if whole else difference
    return Beside(losses[True], losses[False], relative, ROUNDING[settings.train.products], fast, slow, calls)


def _array(parameter: Tensor) -> np.ndarray:
    return np.zeros(parameter.shape, "float32") if parameter.grad is None else parameter.grad.numpy().copy()


def _batch(plan: Plan) -> Batch[np.ndarray]:
    model, rng = plan.settings.model, np.random.default_rng(0)
    longest = min(LONGEST, model.max_length)
    number = max(1, min(plan.settings.train.max_tokens, 1 << 14) // longest)
    lengths = rng.integers(max(2, longest // 2), longest + 1, (number, 2))
    return collate([random_example(model, rng, VOCABULARY, *pair) for pair in lengths.tolist()])


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
