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
import json
import os
import platform
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from typing import Any, NoReturn

import numpy as np
import paddle
from paddle import Tensor
from safetensors import numpy as safetensors

from paddle_tfm import place
from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.train import connections, meeting
from paddle_tfm.train.meeting import Address, Facts, Message

SETTLE, VERDICT = 2.0, 4.5  # seconds in which rank 0 learns who is lost, and in which it says how the training ended
LEAVE = 10.0  # seconds in which the others end, once they may
INLINE = 1022  # numbers of a sum that travel with its head
DONE, STOPPED, FAILED = "done", "stopped", "failed"
Arrays = dict[str, np.ndarray]


class RankLost(CutShort):
    """A rank has ended, with a word why or without one, or cannot be reached."""

    how = "Continue, with any number of processes, with"


def shards_with_ranks(shards: int) -> str:
    """Why a run of several ranks cannot be one of `train.shards`."""
    return (
        f"train.shards={shards} promises the same bits on any number of cores, and several processes (--nproc, "
        "--nodes, a launcher) divide batches by their number: use one of the two"
    )


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

    def total(self, x: Tensor, number: int) -> Tensor:
        """Σ over ranks of x, of any shape, in float64; its last bits are the same in every rank.

        The first numbers of a sum travel with a head, all of a fixed size, by which rank 0 sees whether each takes the
        same sum: the engine ends a process whose sum has another size than its peer's. And rank 0 adds these up itself,
        since gloo's `all_reduce` of few numbers takes longer (docs/decisions).

        Args:
            number: which sum of the pass it is.
        Raises:
            RankLost, UserError: a rank is lost, or takes another sum.
        """
        values = x.detach().astype("float64").numpy().reshape(-1)
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
        return paddle.to_tensor(sums.reshape(x.shape))

    def _added(self, packed: Sequence[np.ndarray]) -> np.ndarray:
        """The sum of what came from each rank. Raises UserError: one takes another sum."""
        own = packed[0][:2]
        for rank, other in enumerate(packed):
            if (other[:2] != own).any():
                of_own, of_other = (
                    f"sum {number:.0f} of {size:,.0f} numbers" if number else "the end of the pass"
                    for number, size in (own, other[:2])
                )
                raise UserError(
                    f"`sum_over_ranks` must be called in one order and with one shape in every rank, but {of_own} came "
                    f"with {of_other} of rank {rank}; train this model with one process"
                )
        return sum(packed[1:], packed[0])

    def reduce(self, flat: Tensor) -> None:
        """Set `flat` [n] to the sum over ranks, at the end of a pass. Raises: as `total`."""
        self.total(flat[:0], 0)
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


class Ranks(Group):
    """What rank 0 has of the others."""

    def __init__(self, size: int, address: Address):
        super().__init__(0, size, address, address.store(keeper=True))
        self.hosts: dict[int, str] = {}
        self.pauses = self.runs = 0
        self.paused, self.closed, self.asked_to_stop = True, False, False
        self.lost = ""  # who is, a sentence
        self.gone: list[int] = []  # and their numbers
        self.connections: dict[int, list[socket.socket]] = {}
        self.engines: list[socket.socket] = []
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.closing, self.close_now = os.pipe()

    def meet(
        self, facts: Facts, report: Callable[[str], None] = lambda text: None, check: Callable[[], None] = lambda: None
    ) -> None:
        """Wait for all others, and make the process group.

        Args:
            facts: what every rank must have alike, values by name. report: gets a sentence on who is waited for.
            check: called while they are waited for; it may raise.
        Raises:
            UserError: one has other facts; all are told. Or some did not come in time, or are lost.
        """
        try:
            hellos = self._arrivals(facts, report, check)
        except UserError as error:
            self.close(FAILED, str(error))
            raise
        self.hosts = {rank: f"process {hello['pid']} on {hello['host']}" for rank, hello in hellos.items()}
        ports = {port: rank for rank, hello in hellos.items() for port in hello["ports"]}
        for each in connections.of_this_process():
            if each.getsockname()[1] == self.address.port and (rank := ports.get(each.getpeername()[1])):
                self.connections.setdefault(rank, []).append(connections.asked_for(each))
        before = {connections.inode(each) for each in connections.of_this_process()}
        self.thread.start()
        where = Address.free(self.address.host)
        self.store.set("welcome", json.dumps({"meeting": str(where)}))
        connections.use_interface_of(self.address.host)
        self._start_while_all_are_there(str(where))
        self.engines = [each for each in connections.of_this_process() if connections.inode(each) not in before]

    def _arrivals(self, facts: Facts, report: Callable[[str], None], check: Callable[[], None]) -> dict[int, Message]:
        """What every other rank says of itself. Raises UserError."""
        there: dict[int, Message] = {}
        end, said = time.monotonic() + meeting.WAIT, time.monotonic() + 5.0
        while missing := [rank for rank in range(1, self.size) if rank not in there]:
            check()
            if time.monotonic() > end:
                raise UserError(f"{meeting.listed(missing, self.size)} did not come within {meeting.WAIT:g} s")
            if time.monotonic() > said:
                report(f"Waiting for {meeting.listed(missing, self.size)}")
                said = end
            if self.store.add("came", 0) == len(there):
                time.sleep(0.02)
                continue
            hello = json.loads(self.store.get(f"hello/{len(there) + 1}"))
            meeting.require_alike(hello, facts, self.size)
            if hello["rank"] in there:
                raise UserError(f"{meeting.name_of(hello)} came twice; give each machine a --node of its own")
            there[hello["rank"]] = hello
        return there

    def _start_while_all_are_there(self, where: str) -> None:
        """As `_start`. Raises RankLost: a rank is lost meanwhile."""
        failed: list[Exception] = []

        def start() -> None:
            try:
                self._start(where)
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=start, daemon=True)
        thread.start()
        while thread.is_alive():
            self.require_all()
            thread.join(0.1)
        if failed:
            self._explain(failed[0])

    def _look(self) -> None:
        """Thread: look whether all are there, and whether a user of theirs wants to stop."""
        store, poller = self.address.store(), select.poll()
        ranks = {each.fileno(): rank for rank, several in self.connections.items() for each in several}
        poller.register(self.closing, select.POLLIN)
        for number in ranks:
            poller.register(number, select.POLLRDHUP | select.POLLHUP)
        while not self.closed:
            if events := [event for event in poller.poll(500) if event[0] in ranks and not self.closed]:
                rank = ranks[events[0][0]]
                self.gone.append(rank)
                why = "it has ended, or cannot be reached"
                if store.add(f"failed/{rank}/there", 0):
                    why = store.get(f"failed/{rank}").decode()
                self.lost = f"rank {rank} ({self.hosts[rank]}), of {self.size}, is lost: {why}"
                store.set("ended", json.dumps({"how": FAILED, "sentence": self.lost}))
                for connection in self.engines:  # what rank 0 waits for raises
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
                return
            self.asked_to_stop |= store.add("stop", 0) > 0

    def require_all(self) -> None:
        """Raises RankLost: a rank is lost."""
        if self.lost:
            raise RankLost(self.lost)

    def stop(self) -> bool:
        """Whether a user of another rank wants to stop. Raises RankLost."""
        self.require_all()
        return self.asked_to_stop

    def send(self, message: Message, arrays: Arrays) -> None:
        """A message and arrays to all others. Raises RankLost."""
        self.require_all()
        if self.paused:
            self.store.set(f"go/{self.pauses}", b"1")
            self.paused, self.pauses = False, self.pauses + 1
        text = np.frombuffer(json.dumps(message).encode(), np.uint8)
        packed = safetensors.save({**arrays, "": text})
        self.spread(paddle.to_tensor([len(packed)], "int64"))
        self.spread(paddle.to_tensor(np.frombuffer(packed, np.uint8)))

    def pause(self) -> None:
        """Have the others wait at the store, until the next message. Raises RankLost."""
        if not self.paused:
            self.spread(paddle.to_tensor([0], "int64"))
            self.paused = True

    def wait_until_built(self) -> None:
        """Wait until all others have built the model of a run. Raises RankLost."""
        self.runs += 1
        while self.store.add(f"built/{self.runs}", 0) < self.size - 1:
            self.require_all()

    def close(self, how: str = DONE, sentence: str = "") -> None:
        """Tell every rank how the training ended, and wait until they have."""
        if self.closed:
            return
        self.closed = True
        os.write(self.close_now, b".")
        if self.thread.is_alive():  # Python ends badly, while a thread is in the store's code
            self.thread.join()
        if not self.lost:
            self.store.set("ended", json.dumps({"how": how, "sentence": sentence}))
        end = time.monotonic() + LEAVE
        for connection in [
            each for rank, several in self.connections.items() if rank not in self.gone for each in several
        ]:
            poller = select.poll()
            poller.register(connection, select.POLLRDHUP | select.POLLHUP)
            poller.poll(max(0.0, end - time.monotonic()) * 1000)

    def _explain(self, error: Exception) -> NoReturn:
        end = time.monotonic() + SETTLE
        while not self.lost and time.monotonic() < end:
            time.sleep(0.02)
        if not self.lost:
            silent = [rank for rank in range(1, self.size) if not self.store.add(f"silent/{rank}", 0)]
            self.gone += silent
            names = " and ".join(f"rank {rank} ({self.hosts[rank]})" for rank in silent) or "a rank"
            self.lost = f"{names}, of {self.size}, stood still for 30 s ({error})"
            self.store.set("ended", json.dumps({"how": FAILED, "sentence": self.lost}))
        raise RankLost(self.lost)


class Member(Group):
    """What another rank than 0 has of the others.

    Args:
        ended: called with how the training ended, one of DONE, STOPPED, FAILED, and a sentence; it must end this
            process, whatever that waits for.
    Raises:
        UserError: nobody answers at the address.
    """

    def __init__(self, rank: int, size: int, address: Address, facts: Facts, ended: Callable[[str, str], NoReturn]):
        host = address.require_answer()
        super().__init__(rank, size, address, address.store())
        self.ended, self.pauses, self.runs = ended, 0, 0
        store = address.store()
        ours = [each for each in connections.of_this_process() if each.getpeername()[1] == address.port]
        ports = [connections.asked_for(each).getsockname()[1] for each in ours]
        threading.Thread(target=self._listen, args=[store], daemon=True).start()
        hello = {"rank": rank, "facts": {name: list(values) for name, values in facts.items()}, "ports": ports}
        came = self.store.add("came", 1)
        self.store.set(f"hello/{came}", json.dumps({**hello, "host": platform.node(), "pid": os.getpid()}))
        with self._collective():
            welcome = json.loads(self.store.get("welcome"))
        connections.use_interface_of(host)
        with self._collective():
            self._start(welcome["meeting"])

    def _listen(self, store: Any) -> None:
        """Thread: end this process as soon as rank 0 says so, or is lost."""
        try:
            said = json.loads(store.get("ended"))
        except Exception:  # whatever the engine makes of it
            said = {"how": FAILED, "sentence": self._without_rank_0()}
        self.ended(said["how"], said["sentence"])

    def _without_rank_0(self) -> str:
        return (
            f"rank 0 ({self.address}) is lost: it has ended, or cannot be reached; what is saved is there, and "
            "--resume continues it with any number of processes"
        )

    def next(self) -> tuple[Message, Arrays]:
        """The next message of rank 0. Raises UserError: rank 0 is lost."""
        size = self._size() if self.pauses else 0
        while size == 0:  # rank 0 does something else
            with self._collective():
                self.store.get(f"go/{self.pauses}")
            self.pauses += 1
            size = self._size()
        packed = paddle.zeros([size], "uint8")
        self.spread(packed)
        arrays = safetensors.load(packed.numpy().tobytes())
        return json.loads(arrays.pop("").tobytes()), arrays

    def _size(self) -> int:
        """How many bytes the next message has; 0: a pause."""
        size = paddle.zeros([1], "int64")
        self.spread(size)
        return int(size.numpy()[0])

    def built(self) -> None:
        """Say that this rank has built the model of a run."""
        self.runs += 1
        self.store.add(f"built/{self.runs}", 1)

    def fail(self, sentence: str) -> None:
        """Tell rank 0 why this rank ends."""
        store = self.address.store()
        store.set(f"failed/{self.rank}", sentence)
        store.add(f"failed/{self.rank}/there", 1)

    def _explain(self, error: Exception) -> NoReturn:
        """Rank 0 knows, and `_listen` hears it."""
        with suppress(Exception):
            self.store.add(f"silent/{self.rank}", 1)
        time.sleep(VERDICT)
        self.ended(FAILED, self._without_rank_0())


def ask_to_stop(address: Address) -> None:
    """From another rank: rank 0 is to stop after this step, with a checkpoint."""
    address.store().add("stop", 1)
