"""Into how many shards a training divides each of its batches, and the gradients of one of them.

A shard is some rows of every batch of a step. The gradients of shards are summed in their order, so that their number,
and not that of the processes that compute them, decides the last bits of the sum. It is chosen once, when a training
begins: `train.shards`, or as many as there are threads; a training that is resumed keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor
from paddle.utils.dlpack import from_dlpack, to_dlpack

from paddle_tfm import paddle_compat, processes, randomness, runtime
from paddle_tfm.data.batches import Batch, collate
from paddle_tfm.data.codec import Encoded
from paddle_tfm.train.divided.probe import attempt, difference
from paddle_tfm.train.running_statistics import undone
from paddle_tfm.train.step import LossSum, Step

PROBE_ROWS = 4  # rows of the batch that tests whether a model can be sharded


class Shard(NamedTuple):
    """Part `rank` (from 0) of `num_shards` of each batch of step `number`."""

    number: int
    batches: Sequence[Batch[np.ndarray]]
    rank: int
    num_shards: int


def number_of_shards(
    step: Step, examples: Sequence[Encoded], rows: int, report: Callable[[str], None] = lambda text: None
) -> int:
    """How many shards a training that begins now divides its batches into: as many as the recipe says, or as there are
    processes for; 1 where that does not help (one thread, small batches, long texts of which a batch has one) or would
    change the numbers (the model depends on whole batches).

    Args:
        examples: training examples; the first few are the probe.
        rows: of a usual batch; more shards than that would be empty.
        report: called with a sentence where the model does not allow what the recipe says.
    """
    count = step.settings.shards
    if count is None:
        count = min(processes.available_workers(), step.settings.max_tokens // processes.MIN_BATCH_TOKENS, rows)
        if not can_share(step):
            count = 1
    if count < 2:
        return 1
    reason = why_whole(step, examples[:PROBE_ROWS])
    runtime.return_freed_memory()  # of two sets of gradients; a worker's copy of these pages would be needed too
    if reason is None:
        return count
    if step.settings.shards is not None:
        report(f"train.shards={count} counts as 1, since parts of a batch are not the whole: {reason}")
    return 1


def can_share(step: Step) -> bool:
    """Whether processes can share this step: its parameters are float32, and this Paddle can move them."""
    return paddle_compat.can_move_into() and all(each.dtype == paddle.float32 for each in step.parameters)


def backward_shard(step: Step, shard: Shard) -> LossSum:
    """Add the gradients of a shard to the parameters'; losses are divided by the tokens of whole batches, so that
    shards add up."""
    tokens, losses = sum(batch.tokens for batch in shard.batches), LossSum()
    for micro, batch in enumerate(shard.batches):
        first, last = (len(batch.index) * end // shard.num_shards for end in (shard.rank, shard.rank + 1))
        if first < last:
            rows = batch.rows(first, last)
            with randomness.random_context(step.seed, shard.number, micro, first, last - first) as context:
                losses.add(*step.forward_backward(rows, context, tokens, len(shard.batches)))
    return losses


def take_gradients(step: Step) -> list[Tensor | None]:
    """The gradients; they are cleared from the parameters."""
    # Another tensor over the same numbers, since clearing empties every tensor that Paddle gives for a gradient.
    gradients = [
        None if parameter.grad is None else from_dlpack(to_dlpack(parameter.grad.detach()))
        for parameter in step.parameters
    ]
    step.clear()
    return gradients


@paddle.no_grad()
def add_gradients(step: Step, gradients: Sequence[Tensor | None]) -> None:
    """Add these to the parameters' gradients."""
    for parameter, gradient in zip(step.parameters, gradients):
        total = parameter.grad
        if total is None and gradient is not None:
            parameter.grad = gradient.clone()
        elif total is not None and gradient is not None:
            total.add_(gradient)


def why_whole(step: Step, examples: Sequence[Encoded]) -> str | None:
    """Why a batch of `examples` must not be divided: what is another where two shards of it are added, or a buffer that
    training changes, which each process would change apart: a norm over the batch, a balance loss or a layer with
    Paddle's own generator is found so. None: it may be. Buffers stay as they are; gradients are cleared."""
    model, batch = step.model, collate(examples)
    training = model.training
    before = {path: buffer.numpy().copy() for path, buffer in model.built_buffers().items()}
    model.train()
    with undone(model.built_buffers().values()):
        whole = attempt(step, lambda: backward_shard(step, Shard(0, [batch], 0, 1)))
    with undone(model.built_buffers().values()):
        parts = attempt(step, lambda: _two_shards(step, batch))
    if not training:
        model.eval()
    changed = [path for path, buffer in whole.buffers.items() if not np.array_equal(before[path], buffer)]
    return f"training changes the buffer {changed[0]}" if changed else difference(whole, parts, model)


def _two_shards(step: Step, batch: Batch[np.ndarray]) -> LossSum:
    losses = LossSum()
    for rank in (0, 1):
        of_shard = backward_shard(step, Shard(0, [batch], rank, 2))
        losses.add(of_shard.loss, of_shard.aux_losses)
    return losses
