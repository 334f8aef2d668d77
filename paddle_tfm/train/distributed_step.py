"""The step of `train/step.py` with every batch divided among ranks: processes on one machine or on several.

    rank 0:  weights and batches → all    gradients of its rows    sum of all gradients ← all    clip, update
    others:                               gradients of their rows

A loss is divided by the tokens of the whole step before its gradient is taken, so that gradients of ranks add up, with
however many tokens each: their mean, as of `paddle.DataParallel`, would be another loss's. The gradients of a rank,
which parameters have one, and its loss travel as one array. Rank 0 alone has optimizer, texts and checkpoints; so no
two copies of them can differ, and a checkpoint knows nothing of ranks. Dropout draws for a row what it would in one
process, and what depends on the whole batch is summed over ranks (`paddle_tfm.ranks`): results differ from those of one
process by rounding only. A probe before training holds a model to that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import place, randomness, ranks, runtime
from paddle_tfm.data.batches import Batch, collate
from paddle_tfm.data.codec import Encoded
from paddle_tfm.errors import UserError
from paddle_tfm.train import divided_probe
from paddle_tfm.train.divergence import ARRAYS
from paddle_tfm.train.members import Ranks
from paddle_tfm.train.run import Run
from paddle_tfm.train.running_statistics import remembered
from paddle_tfm.train.step import DividedStep, Gradients, LossSum, Step, StepMetrics

Batches = Sequence[Batch[np.ndarray]]


@contextmanager
def distributed(plain: Step, run: Run, others: Ranks) -> Iterator[Step]:
    """Within this block: a `DistributedStep` in place of `plain`.

    Raises:
        UserError: no batch has as many rows as there are ranks, or the model gives other numbers where it is divided.
    """
    most = run.stream().most_rows()
    if most < others.size:
        raise UserError(
            f"{others.size} processes must each get a row of a batch, but no batch of {run.name} has more than {most}; "
            f"use at most {most}, or raise train.max_tokens={run.settings.train.max_tokens:,}"
        )
    step = DistributedStep(plain, others)
    step.start(run, run.encoded["train"][: others.size + 1])
    yield step


class DistributedStep(DividedStep):
    """A step whose batches `others` share, in rank 0."""

    def __init__(self, plain: Step, others: Ranks):
        super().__init__(plain)
        self.others, self.flat = others, Flat(self.parameters)
        self.stale = False  # whether the others' buffers are not as ours

    def start(self, run: Run, examples: Sequence[Encoded]) -> None:
        """Give the model to all ranks, and see whether they compute together what one computes alone.

        Raises:
            UserError: they do not; the sentence says where it begins.
        """
        model, sizes = self.model, [len(run.codec.source_vocabulary), len(run.codec.target_vocabulary)]
        named = dict([*model.named_parameters(), *model.built_buffers().items()])
        message = {"do": "run", "recipe": run.recipe, "sizes": sizes, "names": list(named)}
        message["components"] = run.plan.providers()
        self.others.send(message, [each.numpy() for each in named.values()])
        self._probe(collate(examples))
        runtime.return_freed_memory()  # of two sets of gradients

    def __call__(self, number: int, batches: Batches) -> StepMetrics:
        """As `Step`. Where there is no update, ours are the buffers from before the step (`Trainer`)."""
        metrics = super().__call__(number, batches)
        self.stale |= not (math.isfinite(metrics.loss) and math.isfinite(metrics.gradient_norm))
        return metrics

    def backward(self, number: int, batches: Batches) -> LossSum:
        """As `Step.backward`, but for rounding."""
        self._send(number, batches)
        losses = backward_of_rank(self, number, batches, 0, self.others.size, self.others.total)
        array = self.flat.take(losses.loss)
        self.others.reduce(array)
        self.flat.give(array)
        self.others.asked_to_stop |= bool(array[-1] > 0.0)
        if any(len(batch.index) < self.others.size for batch in batches):
            self.stale = True  # our buffers have seen a batch that was ours alone
        return replace(losses, loss=float(array[-2]))

    def _send(self, number: int, batches: Batches) -> None:
        """The weights and the batches to all others; and buffers, where theirs are old."""
        facts = [{"extra": int(batch.extra), "tokens": int(batch.tokens)} for batch in batches]
        arrays = [np.concatenate([memory(parameter).reshape(-1) for parameter in self.parameters])]
        arrays += [np.ascontiguousarray(getattr(batch, name)) for batch in batches for name in ARRAYS]
        if self.stale:
            arrays += [buffer.numpy() for buffer in self.model.built_buffers().values()]
        self.others.send({"do": "step", "number": number, "batches": facts}, arrays)
        self.stale = False

    def _probe(self, batch: Batch[np.ndarray]) -> None:
        """Raises UserError where the ranks together do not get the loss, gradients and buffers of one process."""
        restore = remembered(self.model.built_buffers().values())
        self.model.train()
        whole = divided_probe.attempt(self, lambda: Gradients.backward(self, 0, [batch]))
        restore()
        divided = divided_probe.attempt(self, lambda: self.backward(0, [batch]))
        restore()
        self.stale = True
        if difference := divided_probe.difference(whole, divided, self.model):
            raise UserError(
                f"{difference} where {self.others.size} processes share a batch: from its own rows alone, each "
                "computes something of the whole batch, or draws at random. Sums over rows belong into "
                "`paddle_tfm.ranks.sum_over_ranks`, dropout is `paddle_tfm.layers.Dropout`; or train this model with "
                "one process"
            )


def backward_of_rank(
    step: Gradients, number: int, batches: Batches, rank: int, size: int, total: ranks.Total
) -> LossSum:
    """Add the gradients of the rows of one of `size` ranks to the parameters'. The loss is its share of the step's; the
    auxiliary losses are those of the whole batch. A batch with fewer rows than ranks is rank 0's alone."""
    tokens, losses = sum(batch.tokens for batch in batches), LossSum()
    for micro, batch in enumerate(batches):
        rows = len(batch.index)
        parts = size if rows >= size else 1
        if rank >= parts:
            continue
        first, last = (rows * end // parts for end in (rank, rank + 1))
        with (
            randomness.random_context(step.seed, number, micro, first, last - first) as context,
            ranks.divided(total) if parts > 1 else nullcontext(),
        ):
            loss, aux_losses = step.forward_backward(batch.rows(first, last), context, tokens, len(batches) * parts)
        losses.add(loss, {name: value * parts for name, value in aux_losses.items()})
    return losses


class Flat:
    """The gradients of `parameters` in one float32 array, and behind them: of each parameter, whether it has one; the
    loss; and whether the user wants to stop."""

    def __init__(self, parameters: Sequence[Tensor]):
        self.parameters = parameters
        wrong = [str(parameter.dtype) for parameter in parameters if parameter.dtype != paddle.float32]
        if wrong:
            raise UserError(f"a run of several processes must have float32 parameters, but some are {wrong[0]}")
        self.ends = np.cumsum([0, *(int(parameter.size) for parameter in parameters)])
        self.array = np.zeros(int(self.ends[-1]) + len(parameters) + 2, np.float32)

    def views(self, array: np.ndarray) -> list[np.ndarray]:
        """The part of each parameter, in its shape."""
        return [
            array[first:last].reshape(parameter.shape)
            for parameter, first, last in zip(self.parameters, self.ends, self.ends[1:])
        ]

    def take(self, loss: float, stop: bool = False) -> np.ndarray:
        """The array, with the gradients that the parameters have now."""
        present = self.array[self.ends[-1] : -2]
        for i, (parameter, view) in enumerate(zip(self.parameters, self.views(self.array))):
            present[i] = parameter.grad is not None
            view[...] = 0.0 if parameter.grad is None else memory(parameter.grad)
        self.array[-2:] = loss, stop
        return self.array

    @paddle.no_grad()
    def give(self, array: np.ndarray) -> None:
        """Set the gradients of the parameters to those of the array; none, where no rank has one."""
        present = array[self.ends[-1] : -2]
        for parameter, view, there in zip(self.parameters, self.views(array), present):
            gradient = parameter.grad
            if there and gradient is None:
                parameter.grad = paddle.to_tensor(view)
            elif there and gradient is not None and place.on_cpu(gradient):
                memory(gradient)[...] = view
            elif there and gradient is not None:
                paddle.assign(paddle.to_tensor(view), output=gradient)


def memory(tensor: Tensor) -> np.ndarray:
    """The memory of a tensor; of one on a GPU a copy."""
    return np.from_dlpack(tensor.detach()) if place.on_cpu(tensor) else tensor.numpy()


def batches_of(facts: Sequence[dict[str, Any]], arrays: Sequence[np.ndarray]) -> list[Batch[np.ndarray]]:
    """The batches of a message."""
    width = len(ARRAYS)
    parts = [arrays[first : first + width] for first in range(0, width * len(facts), width)]
    values: list[dict[str, Any]] = [dict(zip(ARRAYS, part)) for part in parts]
    return [Batch(**of_one, **beside) for of_one, beside in zip(values, facts)]
