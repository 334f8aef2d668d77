"""The step of `train/step.py` with every batch divided into shards, which processes share: data parallelism on the CPU
of one machine.

On a CPU, two processes of one thread with half a batch each are faster than one process of two threads with the whole
batch (docs/performance.md). So workers, forks of the training process, compute the gradients of shards beside it
(`shards.py`). Parameters and gradients are in shared memory, and the training process sums the gradients in the
order of the shards, whoever computed them: where there are fewer processes than shards, one computes several, one after
another, to the same bits. Dropout draws the same mask for a row in a shard as in the whole batch, so that sharding
changes sums in their last bits only.
"""

from __future__ import annotations

import functools
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import paddle_compat, processes
from paddle_tfm.data.batches import Batch
from paddle_tfm.train.divided.shards import Shard, add_gradients, backward_shard, can_share, take_gradients
from paddle_tfm.train.step import DividedStep, LossSum, Step

ALIGNMENT = 16  # in float32 numbers: a cache line
Arrays = list[np.ndarray]


class Answer(NamedTuple):
    """What a worker says of a shard: its losses, and which parameters have a gradient in the shared memory."""

    losses: LossSum
    has_gradient: list[bool]


@contextmanager
def sharded(plain: Step, num_shards: int) -> Iterator[Step]:
    """Within this block: a `ShardedStep` in place of `plain`, or `plain` itself for one shard (`number_of_shards`)."""
    if num_shards < 2:
        yield plain
        return
    count = min(num_shards, processes.available_workers()) if can_share(plain) else 1
    step = ShardedStep(plain, num_shards, count)
    try:
        step.start()
        yield step
    finally:
        step.close()


class ShardedStep(DividedStep):
    """A step whose `num_shards` shards are computed by `num_processes` processes, each some that follow one another:
    the first by this process, the others by workers. `close` ends the workers."""

    def __init__(self, plain: Step, num_shards: int, num_processes: int):
        super().__init__(plain)
        self.num_shards, self.num_processes = num_shards, num_processes
        self.threads_of_each = processes.threads_of_each(num_processes)
        self.weights: Arrays = []
        self.workers: list[processes.Worker] = []
        self.gradients: list[list[Tensor]] = []  # of each shard that a worker computes, in shared memory

    def start(self) -> None:
        """Start the workers."""
        if self.num_processes == 1:
            return
        self.optimizer.clear_grad(set_to_zero=False)  # the workers' copies would add to those of the last step
        self.weights = _shared_memory(self.parameters)
        self._publish()
        for process in range(1, self.num_processes):
            memories = {rank: _shared_memory(self.parameters) for rank in self._ranks(process)}
            worker = processes.Worker(functools.partial(self._work, memories), self.threads_of_each)
            self.workers.append(worker)
            self.gradients += [[paddle.utils.dlpack.from_dlpack(array) for array in each] for each in memories.values()]
        processes.set_threads(self.threads_of_each)

    def close(self) -> None:
        """End the workers and give this process all its threads again."""
        for worker in self.workers:
            worker.close()
        self.workers, self.gradients = [], []
        processes.set_threads(processes.own_threads())

    def backward(self, number: int, batches: Sequence[Batch[np.ndarray]]) -> LossSum:
        """As `Step.backward`, except for rounding. If a batch has fewer rows than there are shards, some are empty."""
        if self.workers:
            self._publish()
        for worker in self.workers:
            worker.submit((number, batches))
        losses = LossSum()
        for rank in self._ranks(0):
            before = take_gradients(self) if rank else []
            of_shard = backward_shard(self, Shard(number, batches, rank, self.num_shards))
            losses.add(of_shard.loss, of_shard.aux_losses)
            add_gradients(self, before)
        answers = [answer for worker in self.workers for answer in worker.result()]
        for answer, gradients in zip(answers, self.gradients):
            losses.add(answer.losses.loss, answer.losses.aux_losses)
            present = [one if has else None for one, has in zip(gradients, answer.has_gradient)]
            add_gradients(self, present)
        return losses

    def _ranks(self, process: int) -> range:
        """The shards that a process computes."""
        first, last = (self.num_shards * end // self.num_processes for end in (process, process + 1))
        return range(first, last)

    def _publish(self) -> None:
        """Move the parameters into the shared memory, unless they are there."""
        for parameter, array in zip(self.parameters, self.weights):
            if parameter.data_ptr() != array.ctypes.data:
                paddle_compat.move_into(parameter, array)

    def _work(self, memories: dict[int, Arrays], task: tuple[int, Sequence[Batch[np.ndarray]]]) -> list[Answer]:
        """In a worker: write the gradients of its shards of a step's batches into `memories`."""
        (number, batches), answers = task, []
        for rank, memory in memories.items():
            losses = backward_shard(self, Shard(number, batches, rank, self.num_shards))
            answers.append(
                Answer(losses, [_move_gradient(each, array) for each, array in zip(self.parameters, memory)])
            )
        return answers


def _move_gradient(parameter: Tensor, array: np.ndarray) -> bool:
    """Write the gradient into `array` and clear it from the parameter. Returns whether there is one."""
    gradient = parameter.grad
    if gradient is not None:
        np.copyto(array, np.from_dlpack(gradient.detach()))
        parameter.clear_gradient(False)  # by position: Paddle ignores the keyword `set_to_zero`
    return gradient is not None


def _shared_memory(parameters: Sequence[Tensor]) -> Arrays:
    """Arrays of zeros in the shapes of the parameters, in memory shared with forks of this process."""
    sizes = [-(-parameter.size // ALIGNMENT) * ALIGNMENT for parameter in parameters]
    memory = np.frombuffer(mmap.mmap(-1, 4 * sum(sizes)), np.float32)
    pieces = np.split(memory, np.cumsum(sizes)[:-1])
    return [piece[: parameter.size].reshape(parameter.shape) for piece, parameter in zip(pieces, parameters)]
