"""Into how many shards a training divides each of its batches, and the gradients of one of them.

A shard is some rows of every batch of a step. The gradients of shards are summed in their order, so that their number,
and not that of the processes that compute them, decides the last bits of the sum. It is chosen once, when a training
begins: `train.shards`, or as many as there are threads; a training that is resumed keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor
from paddle.utils.dlpack import from_dlpack, to_dlpack

from paddle_tfm import paddle_compat, processes, randomness
from paddle_tfm.data.batches import Batch, collate
from paddle_tfm.data.codec import Encoded
from paddle_tfm.train.buffers import undone
from paddle_tfm.train.step import LossSum, Step

PROBE_ROWS = 4  # rows of the batch that tests whether a model can be sharded


class Shard(NamedTuple):
    """Part `rank` (from 0) of `num_shards` of each batch of step `number`."""

    number: int
    batches: Sequence[Batch[np.ndarray]]
    rank: int
    num_shards: int


def number_of_shards(step: Step, examples: Sequence[Encoded]) -> int:
    """How many shards a training that begins now divides its batches into: as many as the recipe says, or as there are
    processes for; 1 where that does not help (one thread, small batches) or would change the numbers (the model depends
    on whole batches).

    Args:
        examples: training examples; the first few are the probe.
    """
    count = step.settings.shards
    if count is None:
        count = min(processes.available_workers(), step.settings.max_tokens // processes.MIN_BATCH_TOKENS)
        if not can_share(step):
            count = 1
    return count if count > 1 and adds_up(step, examples[:PROBE_ROWS]) else 1


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


def adds_up(step: Step, examples: Sequence[Encoded]) -> bool:
    """Whether two shards of a batch of `examples` add up to the loss and the gradients of the whole batch, and no
    buffer changes: a norm over the batch, a balance loss or a layer with Paddle's own generator is found so. Parameters
    and buffers stay as they are; gradients are cleared."""
    model, batch = step.model, collate(examples)
    training, buffers = model.training, list(model.buffers())
    before = [buffer.numpy().copy() for buffer in buffers]
    take_gradients(step)
    model.train()
    with undone(buffers):
        whole_loss, whole = backward_shard(step, Shard(0, [batch], 0, 1)).loss, _arrays(take_gradients(step))
        parts_loss = sum(backward_shard(step, Shard(0, [batch], rank, 2)).loss for rank in (0, 1))
        parts = _arrays(take_gradients(step))
        changed = any(not np.array_equal(array, buffer.numpy()) for array, buffer in zip(before, buffers))
    if not training:
        model.eval()
    norm = math.sqrt(sum(float(np.vdot(gradient, gradient)) for gradient in whole if gradient is not None))
    same_loss = math.isclose(whole_loss, parts_loss, rel_tol=1e-4)
    return (
        not changed
        and same_loss
        and all(
            one is other if one is None or other is None else close(one, other, norm)
            for one, other in zip(whole, parts)
        )
    )


def _arrays(gradients: Sequence[Tensor | None]) -> list[np.ndarray | None]:
    return [None if gradient is None else gradient.numpy() for gradient in gradients]


def close(one: np.ndarray, other: np.ndarray, norm: float) -> bool:
    """Whether two gradients are equal except for rounding, which is relative to the norm of all gradients together
    (`norm`): the gradient of a key's bias is 0, and rounding is all that it holds."""
    return bool(np.linalg.norm(one - other) <= 1e-3 * np.linalg.norm(one) + 1e-6 * norm)
