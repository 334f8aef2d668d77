"""The step of `train/step.py` with every batch divided among processes: data parallelism on the CPU of one machine.

On a CPU, two processes of one thread with half a batch each are faster than one process of two threads with the whole
batch (docs/performance.md). So workers, forks of the training process, each compute the gradients of a shard: some rows
of every batch. Parameters and gradients are in shared memory, and the training process sums the gradients. Dropout
draws the same mask for a row in a shard as in the whole batch, so that sharding changes sums in their last bits only. A
probe before training detects models for which that does not hold (BatchNorm and balance losses depend on the whole
batch; layers may use Paddle's own generator): they are not sharded.
"""

from __future__ import annotations

import functools
import math
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import paddle_compat, processes, randomness
from paddle_tfm.data.batches import Batch, collate
from paddle_tfm.data.codec import Encoded
from paddle_tfm.train.step import LossSum, Step

PROBE_ROWS = 4  # rows of the batch that tests whether a model can be sharded
ALIGNMENT = 16  # in float32 numbers: a cache line
Arrays = list[np.ndarray]


class Shard(NamedTuple):
    """The rows of one process in the batches of step `number`: of each batch, part `rank` (from 0) of `num_shards`."""

    number: int
    batches: Sequence[Batch[np.ndarray]]
    rank: int
    num_shards: int


class Answer(NamedTuple):
    """The result of a worker for a shard: its losses, and which parameters have a gradient in the shared memory."""

    losses: LossSum
    has_gradient: list[bool]


@contextmanager
def sharded(plain: Step, examples: Sequence[Encoded], num_processes: int | None = None) -> Iterator[Step]:
    """Within this block: a `ShardedStep` in place of `plain`, or `plain` itself if sharding does not help (one thread,
    small batches) or would change the numbers (the model depends on whole batches).

    Args:
        examples: training examples; the first few are the probe. num_processes: None: as many as there are threads.
    """
    threads = processes.available_workers()
    count = num_processes or min(threads, plain.settings.max_tokens // processes.MIN_BATCH_TOKENS)
    float32 = all(parameter.dtype == paddle.float32 for parameter in plain.parameters)
    if min(count, threads) < 2 or not float32 or not paddle_compat.can_move_into():
        yield plain
        return
    step = ShardedStep(plain, count, threads)
    try:
        if step.start(examples[:PROBE_ROWS]):
            processes.set_threads(step.threads_per_process)
            yield step
        else:
            step.close()
            yield plain
    finally:
        step.close()


class ShardedStep(Step):
    """A step whose first shard this process computes, and the others `count` - 1 workers. `close` ends the workers."""

    def __init__(self, plain: Step, count: int, threads: int):
        super().__init__(
            plain.model,
            plain.parameters,
            plain.optimizer,
            plain.schedule,
            plain.settings,
            plain.seed,
            plain.average,
        )
        self.count, self.threads, self.threads_per_process = count, threads, max(1, threads // count)
        self.weights = _shared_memory(self.parameters)
        self.workers: list[processes.Worker] = []
        self.gradients: list[list[Tensor]] = []  # of each worker, in shared memory

    def start(self, examples: Sequence[Encoded]) -> bool:
        """Start the workers. Returns whether two shards of a batch of `examples` add up to the loss and the gradients
        of the whole batch; a worker computes that, because its model is a copy."""
        self.optimizer.clear_grad(set_to_zero=False)  # the workers' copies would add to those of the last step
        memories = [_shared_memory(self.parameters) for _ in range(self.count - 1)]
        self._publish()
        for memory in memories:
            worker = processes.Worker(functools.partial(self._work, memory), self.threads_per_process)
            self.workers.append(worker)
        self.gradients = [[paddle.utils.dlpack.from_dlpack(array) for array in memory] for memory in memories]
        self.workers[0].submit(collate(examples))
        return self.workers[0].result()

    def close(self) -> None:
        """End the workers and give this process all threads again."""
        for worker in self.workers:
            worker.close()
        self.workers, self.gradients = [], []
        processes.set_threads(self.threads)

    def backward(self, number: int, batches: Sequence[Batch[np.ndarray]]) -> LossSum:
        """As `Step.backward`, except for rounding. If a batch has fewer rows than there are processes, this process
        computes the whole step."""
        if min(len(batch.index) for batch in batches) < self.count:  # long texts, one or two a batch
            processes.set_threads(self.threads)
            try:
                return super().backward(number, batches)
            finally:
                processes.set_threads(self.threads_per_process)
        self._publish()
        for index, worker in enumerate(self.workers, 1):
            worker.submit(Shard(number, batches, index, self.count))
        losses = self._backward_shard(Shard(number, batches, 0, self.count))
        for worker, gradients in zip(self.workers, self.gradients):
            answer: Answer = worker.result()
            losses.add(answer.losses.loss, answer.losses.aux_losses)
            self._add(gradients, answer.has_gradient)
        return losses

    def _backward_shard(self, shard: Shard) -> LossSum:
        """Add the gradients of a shard to the parameters'; losses are divided by the tokens of whole batches, so that
        shards add up."""
        tokens, losses = sum(batch.tokens for batch in shard.batches), LossSum()
        for micro, batch in enumerate(shard.batches):
            first, last = (len(batch.index) * end // shard.num_shards for end in (shard.rank, shard.rank + 1))
            if first < last:
                rows = batch.rows(first, last)
                with randomness.random_context(self.seed, shard.number, micro, first, last - first) as context:
                    losses.add(*self.forward_backward(rows, context, tokens, len(shard.batches)))
        return losses

    @paddle.no_grad()
    def _add(self, gradients: Sequence[Tensor], has_gradient: Sequence[bool]) -> None:
        """Add a worker's gradients to the parameters'."""
        for parameter, gradient, present in zip(self.parameters, gradients, has_gradient):
            total = parameter.grad
            if present and total is None:
                parameter.grad = gradient.clone()
            elif present and total is not None:
                total.add_(gradient)

    def _publish(self) -> None:
        """Move the parameters into the shared memory, unless they are there."""
        for parameter, array in zip(self.parameters, self.weights):
            if parameter.data_ptr() != array.ctypes.data:
                paddle_compat.move_into(parameter, array)

    # -------------------------------------------------------------------------------------------------- in a worker

    def _work(self, memory: Arrays, task: Shard | Batch[np.ndarray]) -> Answer | bool:
        """For a shard: write its gradients into `memory`. For a batch: `_probe`."""
        if not isinstance(task, Shard):
            return self._probe(task)
        losses, gradients = self._backward_shard(task), self._take_gradients()
        for array, gradient in zip(memory, gradients):
            if gradient is not None:
                np.copyto(array, gradient)
        return Answer(losses, [gradient is not None for gradient in gradients])

    def _take_gradients(self) -> list[np.ndarray | None]:
        """The gradients; they are cleared from the parameters."""
        gradients = [
            None if parameter.grad is None else np.from_dlpack(parameter.grad.detach()) for parameter in self.parameters
        ]
        for parameter in self.parameters:
            parameter.clear_gradient(False)  # by position: Paddle ignores the keyword `set_to_zero`
        return gradients

    def _probe(self, batch: Batch[np.ndarray]) -> bool:
        """Whether two shards add up to the loss and the gradients of the whole batch, and no buffer changes."""
        self.model.train()
        buffers = [buffer.numpy().copy() for buffer in self.model.buffers()]
        whole_loss, whole = self._backward_shard(Shard(0, [batch], 0, 1)).loss, self._take_gradients()
        parts_loss = sum(self._backward_shard(Shard(0, [batch], index, 2)).loss for index in (0, 1))
        parts = self._take_gradients()
        if any(not np.array_equal(array, buffer.numpy()) for array, buffer in zip(buffers, self.model.buffers())):
            return False
        norm = math.sqrt(sum(float(np.vdot(gradient, gradient)) for gradient in whole if gradient is not None))
        return math.isclose(whole_loss, parts_loss, rel_tol=1e-4) and all(
            one is other if one is None or other is None else close(one, other, norm)
            for one, other in zip(whole, parts)
        )


def close(one: np.ndarray, other: np.ndarray, norm: float) -> bool:
    """Whether two gradients are equal except for rounding, which is relative to the norm of all gradients together
    (`norm`): the gradient of a key's bias is 0, and rounding is all that it holds."""
    return bool(np.linalg.norm(one - other) <= 1e-3 * np.linalg.norm(one) + 1e-6 * norm)


def _shared_memory(parameters: Sequence[Tensor]) -> Arrays:
    """Arrays of zeros in the shapes of the parameters, in memory shared with forks of this process."""
    sizes = [-(-parameter.size // ALIGNMENT) * ALIGNMENT for parameter in parameters]
    memory = np.frombuffer(mmap.mmap(-1, 4 * sum(sizes)), np.float32)
    pieces = np.split(memory, np.cumsum(sizes)[:-1])
    return [piece[: parameter.size].reshape(parameter.shape) for piece, parameter in zip(pieces, parameters)]
