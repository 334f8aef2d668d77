"""The step of `train/step.py` with every batch divided among ranks: processes on one machine or on several.

    rank 0:  weights, batches → all    gradients of its rows     sum of all gradients    clip, update
    others:                            gradients of their rows   sum of all gradients

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

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import randomness, ranks, runtime
from paddle_tfm.data.batches import Batch, collate, packed
from paddle_tfm.data.codec import Encoded
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.train.divided import probe
from paddle_tfm.train.ranks.group import Group
from paddle_tfm.train.ranks.rank_zero import Ranks
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
            _(
                "{size} processes must each get a row of a batch, but no batch of {name} has more than {most}; use at "
                "most {most}, or raise train.max_tokens={max_tokens:,}"
            ).format(size=others.size, name=run.name, most=most, max_tokens=run.settings.train.max_tokens)
        )
    step = DistributedStep(plain, others)
    step.start(run, run.encoded["train"][: others.size + 1])
    yield step
    step.rest()


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
        message = {"do": "run", "recipe": run.recipe, "sizes": sizes}
        message["components"] = run.plan.providers()
        self.others.send(message, {name: each.numpy() for name, each in named.items()})
        self.rest()
        self.others.wait_until_built()
        self._probe(collate(examples))
        runtime.return_freed_memory()  # of two sets of gradients

    def rest(self) -> None:
        """As `Step.rest`: the others wait for the next step as long as it takes."""
        self.others.pause()

    def __call__(self, number: int, batches: Batches) -> StepMetrics:
        """As `Step`. Where there is no update, ours are the buffers from before the step (`Trainer`)."""
        metrics = super().__call__(number, batches)
        self.stale |= not (math.isfinite(metrics.loss) and math.isfinite(metrics.gradient_norm))
        return metrics

    def backward(self, number: int, batches: Batches) -> LossSum:
        """As `Step.backward`, but for rounding."""
        beside, parts = packed(batches)
        arrays = {name: np.ascontiguousarray(part) for name, part in parts.items()}
        if self.stale:
            arrays |= {name: buffer.numpy() for name, buffer in self.model.built_buffers().items()}
        self.others.send({"do": "step", "number": number, "batches": beside}, arrays)
        self.flat.share_weights(self.others)
        losses = backward_of_rank(self, number, batches, 0, self.others.size, self.others.total)
        # Our buffers have seen a batch that was ours alone.
        self.stale = any(len(batch.index) < self.others.size for batch in batches)
        return replace(losses, loss=self.flat.sum_gradients(self.others, losses.loss))

    def _probe(self, batch: Batch[np.ndarray]) -> None:
        """Raises UserError where the ranks together do not get the loss, gradients and buffers of one process."""
        restore = remembered(self.model.built_buffers().values())
        self.model.train()
        whole = probe.attempt(self, lambda: Gradients.backward(self, 0, [batch]))
        restore()
        divided = probe.attempt(self, lambda: self.backward(0, [batch]))
        restore()
        self.stale = True
        if difference := probe.difference(whole, divided, self.model):
            raise UserError(
                _(
                    "{difference} where {size} processes share a batch: from its own rows alone, each computes "
                    "something of the whole batch, or draws at random. Sums over rows belong into "
                    "`paddle_tfm.ranks.sum_over_ranks`, dropout is `paddle_tfm.layers.Dropout`; or train this model "
                    "with one process"
                ).format(difference=difference, size=self.others.size)
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
    """All `parameters`, or their gradients, as one array of float32. Behind gradients stand: of each parameter, whether
    it has one; and the loss."""

    def __init__(self, parameters: Sequence[Tensor]):
        self.parameters = parameters
        wrong = [str(parameter.dtype) for parameter in parameters if parameter.dtype != paddle.float32]
        if wrong:
            raise UserError(
                _("a run of several processes must have float32 parameters, but some are {wrong}").format(
                    wrong=wrong[0]
                )
            )
        self.sizes = [int(parameter.size) for parameter in parameters]

    @paddle.no_grad()
    def share_weights(self, group: Group) -> None:
        """Set the parameters to those of rank 0."""
        if group.rank == 0:
            group.spread(paddle.concat([parameter.reshape([-1]) for parameter in self.parameters]))
        else:
            group.spread(flat := paddle.empty([sum(self.sizes)]))
            for parameter, piece in zip(self.parameters, paddle.split(flat, self.sizes)):
                paddle.assign(piece.reshape(parameter.shape), output=parameter)

    @paddle.no_grad()
    def sum_gradients(self, group: Group, loss: float) -> float:
        """Set the gradients of rank 0's parameters to the sums over ranks; none, where no rank has one. Returns the
        sum of the losses."""
        gradients = [parameter.grad for parameter in self.parameters]
        last = paddle.to_tensor([*(each is not None for each in gradients), loss], "float32")
        pieces = [
            paddle.zeros([size]) if gradient is None else gradient.reshape([-1])
            for gradient, size in zip(gradients, self.sizes)
        ]
        flat = paddle.concat([*pieces, last])
        group.reduce(flat)
        if group.rank:
            return loss
        *pieces, last = paddle.split(flat, [*self.sizes, len(gradients) + 1])
        for parameter, piece, there in zip(self.parameters, pieces, last.numpy()):
            if there and parameter.grad is None:
                parameter.grad = piece.reshape(parameter.shape)
            elif there:
                paddle.assign(piece.reshape(parameter.shape), output=parameter.grad)
        return float(last[-1])
