"""The ranks of a run, processes that train it together, on Paddle's engine.

Numbers travel by `paddle.distributed`: gloo between CPUs, NCCL between GPUs. Words travel by Paddle's store, a table
that rank 0 keeps at its address:

    hello/N   what the Nth rank that came is     built/N   how many ranks have the model of the Nth run
    welcome   where the process group meets      go/N      rank 0 goes on after the Nth pause
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
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import paddle
from paddle import Tensor
from safetensors import numpy as safetensors

from paddle_tfm import place
from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.units import whole_number

WAIT = 300.0  # seconds until all have met
PAUSE = 0.2  # between two looks
SILENCE, PROBES = 2, 3  # seconds after which the system asks a silent machine, and between questions; how many may fail
SETTLE, VERDICT = 2.0, 4.5  # seconds in which rank 0 learns who is lost, and in which it says how the training ended
LEAVE = 10.0  # seconds in which the others end, once they may
INLINE = 1022  # numbers of a sum that travel with its head
DONE, STOPPED, FAILED = "done", "stopped", "failed"
Facts = Mapping[str, Sequence[str]]
Message = dict[str, Any]
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


# --------------------------------------------------------------------------------------------------------- the address


@dataclass(frozen=True)
class Address:
    """Where rank 0 keeps the store."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        """HOST:PORT. Raises UserError: it is no such thing."""
        host, _, port = text.rpartition(":")
        number = whole_number(port, 1, 65535)
        if not host or number is None:
            raise UserError(f"--address {text}: must look like HOST:PORT, for instance 10.0.0.1:29500")
        return cls(host.strip("[]"), number)

    @classmethod
    def free(cls, host: str = "127.0.0.1") -> Address:
        """A port of this machine that nobody uses."""
        with socket.create_server((host, 0)) as server:
            return cls(host, server.getsockname()[1])

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def require_ours(self) -> None:
        """Raises UserError: this machine does not have that address, or its port is in use."""
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            socket.create_server((self.host, self.port), family=family).close()
        except OSError as error:
            raise UserError(
                f"--address {self}: rank 0 cannot listen there ({_reason(error)}); it must be an address of "
                "the machine with --node 0, and a port that is free"
            ) from None

    def require_answer(self) -> str:
        """Wait until rank 0 is there; this machine's address on the way to it. Raises UserError: nobody answers."""
        end = time.monotonic() + WAIT
        while True:
            try:
                with socket.create_connection((self.host, self.port), timeout=10.0) as connection:
                    return connection.getsockname()[0]
            except socket.gaierror as error:
                raise UserError(f"--address {self}: there is no machine of that name ({error.strerror})") from None
            except OSError as error:
                if time.monotonic() > end:
                    raise UserError(
                        f"--address {self}: nobody answers there after {WAIT:g} s ({_reason(error)}); start "
                        "the command with --node 0 on that machine, and let its port through the firewall"
                    ) from None
                time.sleep(PAUSE)

    def store(self, keeper: bool = False) -> Any:
        """A connection with the store; `keeper`: and the store itself."""
        return paddle.base.core.TCPStore(self.host, self.port, keeper, 0, 900)


def _reason(error: OSError) -> str:
    """Without the address, which Python adds."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else f"{error.strerror or error}"


# ------------------------------------------------------------------------------------------------------------ the group


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

    def _start(self, meeting: str) -> None:
        """Make the process group of the engine, whose ranks meet at HOST:PORT."""
        on_cpu = place.on_cpu()
        os.environ |= {
            "PADDLE_TRAINER_ID": str(self.rank),
            "PADDLE_TRAINERS_NUM": str(self.size),
            "PADDLE_MASTER": meeting,
            "PADDLE_CURRENT_ENDPOINT": meeting,
            "PADDLE_TRAINER_ENDPOINTS": ",".join([meeting] * self.size),
            "PADDLE_DISTRI_BACKEND": "gloo" if on_cpu else "nccl",
        }
        if not on_cpu:
            os.environ[place.SELECTED_GPUS] = paddle.device.get_device().partition(":")[2]
        with redirect_stderr(io.StringIO()):  # it says which flags are set
            paddle.distributed.init_parallel_env()


class Ranks(Group):
    """What rank 0 has of the others."""

    def __init__(self, size: int, address: Address):
        super().__init__(0, size, address, address.store(keeper=True))
        self.hosts: dict[int, str] = {}
        self.pauses = self.runs = 0
        self.paused, self.closed, self.asked_to_stop = True, False, False
        self.lost = ""  # who is, a sentence
        self.connections: dict[int, list[socket.socket]] = {}
        self.engines: list[socket.socket] = []

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
        for connection in _connections():
            if (rank := _rank_of(connection, self.address, hellos)) is not None:
                self.connections.setdefault(rank, []).append(_asked_for(connection))
        before = {_inode(each) for each in _connections()}
        threading.Thread(target=self._look, daemon=True).start()
        meeting = Address.free(self.address.host)
        self.store.set("welcome", json.dumps({"meeting": str(meeting)}))
        _use_interface_of(self.address.host)
        started = threading.Thread(target=self._start, args=[str(meeting)], daemon=True)
        started.start()
        while started.is_alive():
            self.require_all()
            started.join(0.1)
        self.engines = [each for each in _connections() if _inode(each) not in before]

    def _arrivals(self, facts: Facts, report: Callable[[str], None], check: Callable[[], None]) -> dict[int, Message]:
        """What every other rank says of itself. Raises UserError."""
        there: dict[int, Message] = {}
        end, said = time.monotonic() + WAIT, time.monotonic() + 5.0
        while missing := [rank for rank in range(1, self.size) if rank not in there]:
            check()
            if time.monotonic() > end:
                raise UserError(f"{_listed(missing, self.size)} did not come within {WAIT:g} s")
            if time.monotonic() > said:
                report(f"Waiting for {_listed(missing, self.size)}")
                said = end
            if self.store.add("came", 0) == len(there):
                time.sleep(0.02)
                continue
            hello = json.loads(self.store.get(f"hello/{len(there) + 1}"))
            _require_alike(hello, facts, self.size)
            if hello["rank"] in there:
                raise UserError(f"{_name(hello)} came twice; give each machine a --node of its own")
            there[hello["rank"]] = hello
        return there

    def _look(self) -> None:
        """Thread: look whether all are there, and whether a user of theirs wants to stop."""
        store, poller = self.address.store(), select.poll()
        ranks = {each.fileno(): rank for rank, several in self.connections.items() for each in several}
        for number in ranks:
            poller.register(number, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
        while not self.closed:
            events = poller.poll(500)
            if self.closed:
                return
            if events:
                rank = ranks[events[0][0]]
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
        if not self.lost:
            self.store.set("ended", json.dumps({"how": how, "sentence": sentence}))
        end = time.monotonic() + LEAVE
        for connection in [each for several in self.connections.values() for each in several]:
            poller = select.poll()
            poller.register(connection, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
            poller.poll(max(0.0, end - time.monotonic()) * 1000)

    def _explain(self, error: Exception) -> NoReturn:
        end = time.monotonic() + SETTLE
        while not self.lost and time.monotonic() < end:
            time.sleep(0.02)
        if not self.lost:
            silent = [rank for rank in range(1, self.size) if not self.store.add(f"silent/{rank}", 0)]
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
        ports = [_asked_for(each).getsockname()[1] for each in _connections() if _peer(each)[1] == address.port]
        threading.Thread(target=self._listen, args=[store], daemon=True).start()
        hello = {"rank": rank, "facts": {name: list(values) for name, values in facts.items()}, "ports": ports}
        came = self.store.add("came", 1)
        self.store.set(f"hello/{came}", json.dumps({**hello, "host": platform.node(), "pid": os.getpid()}))
        with self._collective():
            welcome = json.loads(self.store.get("welcome"))
        _use_interface_of(host)
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
        while True:
            if self.pauses == 0 or not (size := self._size()):
                with self._collective():
                    self.store.get(f"go/{self.pauses}")
                self.pauses += 1
                continue
            packed = paddle.zeros([size], "uint8")
            self.spread(packed)
            arrays = safetensors.load(packed.numpy().tobytes())
            return json.loads(arrays.pop("").tobytes()), arrays

    def _size(self) -> int:
        head = paddle.zeros([1], "int64")
        self.spread(head)
        return int(head.numpy()[0])

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


def on_signals(act: Callable[[int], None]) -> None:
    """From now on a thread calls `act` with the number of each SIGINT and SIGTERM, whatever the main thread waits
    for."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *signalled: None)

    def listen() -> None:
        while True:
            act(os.read(reader, 1)[0])

    threading.Thread(target=listen, daemon=True).start()


# ------------------------------------------------------------------------------------------------------------ meeting


def _require_alike(hello: Message, facts: Facts, size: int) -> None:
    """Raises UserError: a rank is not what it should be."""
    for name, own in facts.items():
        other = hello["facts"].get(name) or []
        if other != list(own):
            here, there = ([each for each in one if each not in two] for one, two in ((own, other), (other, own)))
            raise UserError(
                f"{_name(hello)} must have the same {name} as rank 0; but only it has {_and(there)}, and only rank 0 "
                f"has {_and(here)}: give the same command on every machine, but for --node"
            )
    if not 0 < hello["rank"] < size:
        raise UserError(f"{_name(hello)} is none of {size}")


def _name(hello: Message) -> str:
    return f"rank {hello['rank']} (process {hello['pid']} on {hello['host']})"


def _and(values: Sequence[str]) -> str:
    return " and ".join(values) or "nothing"


def _listed(ranks: Sequence[int], size: int) -> str:
    return f"{len(ranks)} of {size} ranks ({', '.join(map(str, ranks[:8]))}{' …' if len(ranks) > 8 else ''})"


# -------------------------------------------------------------------------------------------------------- connections


def _connections() -> Iterator[socket.socket]:
    """The TCP connections of this process, whoever made them; each is a duplicate, which may be closed."""
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(file.readlink()).startswith("socket:"):
                connection = socket.socket(fileno=os.dup(int(file.name)))
                if connection.type == socket.SOCK_STREAM and connection.family in (socket.AF_INET, socket.AF_INET6):
                    connection.getpeername()  # raises, where it is none
                    yield connection


def _inode(connection: socket.socket) -> int:
    return os.fstat(connection.fileno()).st_ino


def _peer(connection: socket.socket) -> tuple[str, int]:
    return connection.getpeername()[:2]


def _rank_of(connection: socket.socket, address: Address, hellos: Mapping[int, Message]) -> int | None:
    """Whose connection with the store of this process it is; None if it is none."""
    if connection.getsockname()[1] == address.port:
        for rank, hello in hellos.items():
            if _peer(connection)[1] in hello["ports"]:
                return rank
    return None


def _asked_for(connection: socket.socket) -> socket.socket:
    """The connection, whose other end the system asks for: a machine that is gone ends it after some seconds."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {"TCP_KEEPIDLE": SILENCE, "TCP_KEEPINTVL": SILENCE, "TCP_KEEPCNT": PROBES}.items():
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


def _use_interface_of(host: str) -> None:
    """Have gloo use the network interface with this address. By default it takes that of the machine's name, which on
    Debian is 127.0.1.1."""
    import fcntl
    import struct

    wanted = {info[4][0] for info in socket.getaddrinfo(host, None)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no address
                answer = fcntl.ioctl(any_socket, 0x8915, struct.pack("256s", name.encode()[:15]))  # SIOCGIFADDR
                if socket.inet_ntoa(answer[20:24]) in wanted:
                    os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
                    return
