"""The gradients of one update, from several batches as if they were one, and shared among processes where that helps.

On a CPU a process of one thread that has half of a batch takes little more than half as long as one that has two threads
and all of it (docs/performance.md). So helpers, which are forks of the process that trains, each take some rows of every
batch. Parameters lie in memory that all of them see; each helper writes its gradients into such memory, and the trainer
adds them up. Dropout gives every row what it would get in the whole batch, so that shares change sums in the last bits
only. A model for which that is not so (one that looks at whole batches: BatchNorm, a balance loss; layers that draw from
Paddle's own generator) is found out before training begins, and is not shared.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import processes, randomness
from paddle_tfm.data.batches import Batch, collate
from paddle_tfm.protocols import Tap
from paddle_tfm.train.objective import objective
from paddle_tfm.train.run import Run

FEW = 4  # rows that tell whether a model can be shared
ALIGNMENT = 16  # float32 numbers: a cache line


class Update(NamedTuple):
    """What is asked for: the gradients of these batches (NumPy) at this step."""

    step: int
    batches: Sequence[Batch]


class Gradients:
    """Computes them for a run; within `shared`, with the help of other processes."""

    def __init__(self, run: Run, parameters: Sequence[Tensor]):
        self.run, self.parameters = run, parameters
        self.cast = {"enable": run.settings.train.precision != "float32", "dtype": "bfloat16"}
        self.helpers: list[processes.Helper] = []
        self.written: list[list[Tensor]] = []  # for each helper the memory of its gradients
        self.weights: list[np.ndarray] = []  # the shared memory of the parameters
        self.extras: dict[str, float] = {}  # what the model itself added to the last loss, by name (`Tap.add_aux_loss`)

    def add(self, update: Update) -> float:
        """Add the gradients of the update's loss to the parameters'; returns the loss, of which `extras` then holds the
        terms that the model added.

        loss = Σ cross entropy of real tokens / number of real tokens in all batches + the mean over batches of what the
        model added, so that accumulation equals the large batch (but for what looks at a whole batch).
        """
        of = 1 + len(self.helpers)
        if min(len(batch.index) for batch in update.batches) < of:  # long texts, one or two at a time
            with self._alone():
                return self._own(update, 0, 1)
        self._publish()
        for number, helper in enumerate(self.helpers, 1):
            helper.ask((update, number, of))
        total = self._own(update, 0, of)
        for helper, written in zip(self.helpers, self.written):
            loss, extras, has_gradient = helper.hear()
            total += loss
            for name, extra in extras.items():
                self.extras[name] = self.extras.get(name, 0.0) + extra
            with paddle.no_grad():
                for parameter, gradient, there in zip(self.parameters, written, has_gradient):
                    if there and parameter.grad is None:
                        parameter.grad = gradient.clone()
                    elif there:
                        parameter.grad.add_(gradient)
        return total

    def _own(self, update: Update, number: int, of: int) -> float:
        """The same for share `number` of `of`."""
        train, seed = self.run.settings.train, self.run.seed
        tokens, total = sum(batch.tokens for batch in update.batches), 0.0
        self.extras = {}
        for micro, batch in enumerate(update.batches):
            first, last = (len(batch.index) * end // of for end in (number, number + 1))
            if first == last:
                continue
            # Layers of other authors may draw from Paddle's generator: that too is a function of (seed, step).
            paddle.seed(randomness.digest(seed, "step", update.step, micro) >> 1)
            with randomness.random_context(seed, update.step, micro, first, last - first):
                tap = Tap()
                with paddle.amp.auto_cast(**self.cast):
                    share = (batch if of == 1 else batch.rows(first, last)).tensors()
                    loss = objective(self.run.model, share, train.label_smoothing, train.r_drop, tap) / tokens
                    for name, extra in tap.aux_losses.items():
                        extra = extra / len(update.batches)
                        loss = loss + extra
                        self.extras[name] = self.extras.get(name, 0.0) + float(extra)
                loss.backward()
            total += float(loss)
        return total

    # -------------------------------------------------------------------------------------------------------- helpers

    @contextmanager
    def shared(self, processes_wanted: int | None = None) -> Iterator[None]:
        """Within this block, `add` shares the work, if there are processes to spare and the model can be shared."""
        threads = processes.available_workers()
        of = processes_wanted or min(threads, self.run.settings.train.max_tokens // processes.LEAST)
        plain = all(parameter.dtype == paddle.float32 for parameter in self.parameters)
        if min(of, threads) < 2 or not plain:
            yield
            return
        with ExitStack() as stack:
            self._help(stack, of, max(1, threads // of))
            if self.helpers:
                processes.set_threads(max(1, threads // of))
            try:
                yield
            finally:
                self.helpers, self.written, self.weights = [], [], []
                processes.set_threads(threads)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Within this block this process has all threads, though there are helpers."""
        threads = processes.available_workers()
        processes.set_threads(threads)
        try:
            yield
        finally:
            processes.set_threads(max(1, threads // (1 + len(self.helpers))))

    def _help(self, stack: ExitStack, of: int, threads: int) -> None:
        """Start the helpers, and keep them if shares agree with the whole."""
        self.weights = _shared_memory(self.parameters)
        gradients = [_shared_memory(self.parameters) for _ in range(of - 1)]
        self._publish()
        for memory in gradients:
            helper = processes.Helper(lambda question, memory=memory: self._answer(memory, *question), threads)
            stack.callback(helper.close)
            self.helpers.append(helper)
        self.written = [[paddle.utils.dlpack.from_dlpack(array) for array in memory] for memory in gradients]
        batch = collate(self.run.encoded["train"][:FEW])
        self.helpers[0].ask((Update(0, [batch]), 0, 0))
        if not self.helpers[0].hear():
            self.helpers = []
            stack.close()

    def _publish(self) -> None:
        """Have the parameters lie in the shared memory, where something has moved them or they never were."""
        for parameter, array in zip(self.parameters, self.weights):
            if parameter.data_ptr() != array.ctypes.data:
                array[...] = parameter.numpy()
                paddle.utils.dlpack.from_dlpack(array)._share_buffer_to(parameter)

    def _answer(self, memory: Sequence[np.ndarray], update: Update, number: int, of: int) -> object:
        """In a helper: the loss of a share, its extra terms, and which parameters have a gradient, now in `memory`.
        Of no shares: whether shares agree with the whole."""
        if of == 0:
            return self._agrees(update)
        loss = self._own(update, number, of)
        taken = self._taken()
        for array, gradient in zip(memory, taken):
            if gradient is not None:
                np.copyto(array, gradient)
        return loss, self.extras, [gradient is not None for gradient in taken]

    def _taken(self) -> list[np.ndarray | None]:
        """The gradients, which the parameters then no longer have."""
        taken = [None if each.grad is None else np.from_dlpack(each.grad.detach()) for each in self.parameters]
        for parameter in self.parameters:
            parameter.clear_gradient(False)
        return taken

    def _agrees(self, update: Update) -> bool:
        """Whether two shares have the loss and the gradients of the whole, and nothing else remembers what it saw."""
        model = self.run.model
        model.train()
        before = [buffer.numpy().copy() for buffer in model.buffers()]
        wholes = self._own(update, 0, 1), self._taken()
        parts = self._own(update, 0, 2) + self._own(update, 1, 2), self._taken()
        if any(not np.array_equal(array, buffer.numpy()) for array, buffer in zip(before, model.buffers())):
            return False
        norm = math.sqrt(sum(float(np.vdot(array, array)) for array in wholes[1] if array is not None))
        return math.isclose(wholes[0], parts[0], rel_tol=1e-4) and all(
            (whole is None) == (part is None) and (whole is None or _close(whole, part, norm))
            for whole, part in zip(wholes[1], parts[1])
        )


def _close(one: np.ndarray, other: np.ndarray, norm: float) -> bool:
    """Whether two gradients are the same but for rounding, which is of the size of all gradients together (`norm`): that
    of a key's bias is nothing else."""
    return np.linalg.norm(one - other) <= 1e-3 * np.linalg.norm(one) + 1e-6 * norm


def _shared_memory(parameters: Sequence[Tensor]) -> list[np.ndarray]:
    """Arrays of zeros in the shapes of the parameters, in memory that forks of this process see too."""
    sizes = [-(-parameter.size // ALIGNMENT) * ALIGNMENT for parameter in parameters]
    memory = np.frombuffer(mmap.mmap(-1, 4 * sum(sizes)), np.float32)
    pieces = np.split(memory, np.cumsum(sizes)[:-1])
    return [piece[: parameter.size].reshape(parameter.shape) for piece, parameter in zip(pieces, parameters)]
