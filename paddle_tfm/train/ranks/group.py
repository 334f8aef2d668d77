"""The ranks of a run, processes that train it together, on Paddle's engine.

Numbers travel by `paddle.distributed`: gloo between CPUs, NCCL between GPUs. Words travel by Paddle's store, a table
that rank 0 keeps at its address:

    hello/N   what the Nth rank that came is     built/N   how many ranks have the model of the Nth run
    welcome   where the process group meets      go/N      rank 0 continues after the Nth pause
    failed/R  what rank R failed with            stop      how often a user asked to stop
    silent/R  rank R waited in vain              ended     how the training ended

A call of gloo waits 30 s and no longer. So nobody waits in one while rank 0 evaluates or saves: it pauses the others,
who wait at the store as long as it takes. The store's connections tell who is there: the system closes those of a
process that ends, and its probes end those of a machine that is gone.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any, NoReturn

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import place
from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.language import _
from paddle_tfm.train.ranks.meeting import Address

SETTLE, VERDICT = 2.0, 4.5  # seconds in which rank 0 learns who is lost, and in which it says how the training ended
LEAVE = 10.0  # seconds in which the others end, once they may
INLINE = 1025  # numbers of a sum that travel with its head: count, mean and variance of 512 channels
DONE, STOPPED, FAILED = "done", "stopped", "failed"
Arrays = dict[str, np.ndarray]


class RankLost(CutShort):
    """A rank has ended, with a word why or without one, or cannot be reached."""

    how = "Continue, with any number of processes, with"


class Group:
    """What every rank has: its number, how many there are, the store, and their sums."""

    def __init__(self, rank: int, size: int, address: Address, store: Any):
        self.rank, self.size, self.address, self.store = rank, size, address, store

    @contextmanager
    def _collective(self) -> Iterator[None]:
        """A call of the engine, which raises in words what it fails with."""
        try:
            yield
        except (RuntimeError, ValueError, OSError) as error:
            self._explain(error)

    def _explain(self, error: Exception) -> NoReturn:
        """Raise what happened to whom."""
        raise NotImplementedError

    def total(self, x: np.ndarray, number: int) -> np.ndarray:
        """Σ over ranks of x, of any shape, in float64; its last bits are the same in every rank.

        The first numbers of a sum travel with a head, all of a fixed size, by which rank 0 sees whether each takes the
        same sum: the engine ends a process whose sum has another size than its peer's. And rank 0 adds these up itself,
        since gloo's `all_reduce` of few numbers takes longer (docs/decisions).

        Args:
            number: which sum of the pass it is.
        Raises:
            RankLost, UserError: a rank is lost, or takes another sum.
        """
        values = x.astype(np.float64).reshape(-1)
        first, rest = values[:INLINE], values[INLINE:]
        packed = paddle.to_tensor(np.concatenate([[number, values.size], first, np.zeros(INLINE - first.size)]))
        everyones: list[Tensor] = []
        with self._collective():
            paddle.distributed.gather(packed, everyones if self.rank == 0 else None, 0)
        if self.rank == 0:
            packed = paddle.to_tensor(self._added([each.numpy() for each in everyones]))
        self.spread(packed)
        sums = packed.numpy()[2 : 2 + first.size]
        if rest.size:
            others = paddle.to_tensor(rest)
            with self._collective():
                paddle.distributed.all_reduce(others)
            sums = np.concatenate([sums, others.numpy()])
        return sums.reshape(x.shape)

    def _added(self, packed: Sequence[np.ndarray]) -> np.ndarray:
        """The sum of what came from each rank. Raises UserError: one takes another sum."""
        own = packed[0][:2]
        for rank, other in enumerate(packed):
            if (other[:2] != own).any():
                of_own, of_other = (
                    _("sum {number:.0f} of {size:,.0f} numbers").format(number=number, size=size)
                    if number
                    else _("the end of the pass")
                    for number, size in (own, other[:2])
                )
                raise UserError(
                    _(
                        "`sum_over_ranks` must be called in one order and with one shape in every rank, but {of_own} "
                        "came with {of_other} of rank {rank}; train this model with one process"
                    ).format(of_own=of_own, of_other=of_other, rank=rank)
                )
        return sum(packed[1:], packed[0])

    def reduce(self, flat: Tensor) -> None:
        """Set `flat` [n] to the sum over ranks, at the end of a pass. Raises: as `total`."""
        self.total(np.zeros(0), 0)
        with self._collective():
            paddle.distributed.all_reduce(flat)

    def spread(self, flat: Tensor) -> None:
        """Set `flat` [n] to that of rank 0. Raises: as `total`."""
        with self._collective():
            paddle.distributed.broadcast(flat, 0)

    def _start(self, where: str) -> None:
        """Make the process group of the engine, whose ranks meet at HOST:PORT."""
        on_cpu, before = place.on_cpu(), dict(os.environ)
        os.environ |= {
            "PADDLE_TRAINER_ID": str(self.rank),
            "PADDLE_TRAINERS_NUM": str(self.size),
            "PADDLE_MASTER": where,
            "PADDLE_CURRENT_ENDPOINT": where,
            "PADDLE_TRAINER_ENDPOINTS": ",".join([where] * self.size),
            "PADDLE_DISTRI_BACKEND": "gloo" if on_cpu else "nccl",
        }
        if not on_cpu:
            os.environ[place.SELECTED_GPUS] = paddle.device.get_device().partition(":")[2]
        try:
            with redirect_stderr(io.StringIO()):  # it says which flags are set
                paddle.distributed.init_parallel_env()
        finally:  # a process that this one starts is no rank
            os.environ.clear()
            os.environ.update(before)
