"""What each rank of a run has of the others, and how it learns why the training ended.

Beside the row in which numbers travel (`chain.py`), every rank has a connection with rank 0. On it a rank says what it
failed with, and rank 0 says to each how the training ended. A rank that ended without a word is lost. A thread looks
at these connections, on which nothing else is under way, so that the system's probes find a machine that is gone; it
ends the row then, and with it whatever this process waits for.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.train.chain import Broken, Chain, Message, receive_message, send_message

SETTLE = 3.0  # seconds in which ranks say what they saw, after one was lost
VERDICT = 30.0  # seconds in which rank 0 says how the training ended
DONE, STOPPED, FAILED = "done", "stopped", "failed"


class RankLost(CutShort):
    """A rank has ended, with a word why or without one, or cannot be reached."""

    how = "Continue, with any number of processes, with"


def shards_with_ranks(shards: int) -> str:
    """Why a run of several ranks cannot be one of `train.shards`."""
    return (
        f"train.shards={shards} promises the same bits on any number of cores, and --nproc and --nodes divide batches "
        "by the number of processes: use one of the two"
    )


class Watch:
    """A thread that ends the row as soon as one of `connections` has ended."""

    def __init__(self, connections: Iterable[socket.socket], chain: Chain):
        self.chain, self.closed, self.poller = chain, False, select.poll()
        for connection in connections:
            self.poller.register(connection, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self.closed:
            if self.poller.poll(500):
                self.chain.interrupt()
                return


@dataclass
class Ranks:
    """What rank 0 has of the others.

    Args:
        size: the number of ranks, this one counted.
    """

    size: int
    chain: Chain
    connections: dict[int, socket.socket] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    asked_to_stop: bool = False  # by the user of another rank's process

    def __post_init__(self) -> None:
        self.watch = Watch(self.connections.values(), self.chain)

    def send(self, message: Mapping[str, Any], arrays: list[np.ndarray]) -> None:
        """A message and arrays to all others.

        Raises:
            RankLost: one of them is gone.
        """
        try:
            self.chain.send(message, arrays)
        except Broken:
            self._explain()

    def reduce(self, array: np.ndarray) -> None:
        """Add to `array` [n] those of all others. Raises: as `send`."""
        try:
            self.chain.reduce(array)
        except Broken:
            self._explain()

    def total(self, array: np.ndarray, number: int) -> np.ndarray:
        """`Chain.total`. Raises: as `send`."""
        try:
            return self.chain.total(array, number)
        except Broken:
            self._explain()

    def close(self, how: str = DONE, sentence: str = "") -> None:
        """Tell every rank how the training ended, and end all connections."""
        self.watch.closed = True
        for connection in self.connections.values():
            with suppress(OSError):
                send_message(connection, {"ended": how, "sentence": sentence})
            connection.close()
        self.connections = {}
        self.chain.close()

    def _explain(self) -> NoReturn:
        """Raise what happened to whom, and tell the others: each rank that lives says what it saw."""
        self.watch.closed = True
        self.chain.close()
        waiting, suspects, why = dict(self.connections), {1}, ""
        lost: list[int] = []
        end = time.monotonic() + SETTLE
        while waiting and not lost and (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select(list(waiting.values()), [], [], left)
            for rank in [rank for rank, connection in waiting.items() if connection in readable]:
                said: Message = {}
                with suppress(OSError, ValueError):
                    said = receive_message(waiting.pop(rank))
                if "missing" in said:
                    suspects.add(int(said["missing"]))
                else:
                    lost.append(rank)
                    why = said.get("failed", why)
        lost = lost or [rank for rank in suspects if rank in waiting] or sorted(waiting)
        names = " and ".join(f"rank {rank} ({self.hosts[rank]})" for rank in lost)
        are, have = ("is", "it has") if len(lost) == 1 else ("are", "they have")
        sentence = f"{names}, of {self.size}, {are} lost: {why or f'{have} ended, or cannot be reached'}"
        self.close(FAILED, sentence)
        raise RankLost(sentence)


# ------------------------------------------------------------------------------------------- in the other ranks


class Ended(Exception):
    """Rank 0 said how the training ended: `how`, one of DONE, STOPPED, FAILED, and a sentence."""

    def __init__(self, how: str, sentence: str):
        super().__init__(sentence)
        self.how = how


@dataclass
class Member:
    """What another rank than 0 has of the others."""

    rank: int
    size: int
    address: str  # of rank 0
    connection: socket.socket
    chain: Chain

    def __post_init__(self) -> None:
        self.watch = Watch([self.connection], self.chain)

    def next(self) -> tuple[Message, list[np.ndarray]]:
        """The next message of rank 0.

        Raises:
            Ended: the training has. UserError: rank 0 is lost.
        """
        try:
            return self.chain.next()
        except Broken as error:
            self._ask(error)

    def reduce(self, array: np.ndarray) -> None:
        """Pass on the sum of `array` [n] and those of the ranks behind. Raises: as `next`."""
        try:
            self.chain.reduce(array)
        except Broken as error:
            self._ask(error)

    def total(self, array: np.ndarray, number: int) -> np.ndarray:
        """`Chain.total`. Raises: as `next`."""
        try:
            return self.chain.total(array, number)
        except Broken as error:
            self._ask(error)

    def fail(self, sentence: str) -> None:
        """Tell rank 0 why this rank ends."""
        with suppress(OSError):
            send_message(self.connection, {"failed": sentence})
        self.close()

    def close(self) -> None:
        """End all connections."""
        self.watch.closed = True
        self.chain.close()
        self.connection.close()

    def _ask(self, error: Broken) -> NoReturn:
        """Raise how the training ended: rank 0 knows. That its neighbours see this rank leave makes rank 0 ask."""
        self.chain.close()
        try:
            if not error.before:
                send_message(self.connection, {"missing": self.rank + 1})
            self.connection.settimeout(VERDICT)
            said = receive_message(self.connection)
        except (OSError, ValueError):
            raise UserError(
                f"rank 0 ({self.address}) is lost: it has ended, or cannot be reached; what is saved is there, and "
                "--resume continues it with any number of processes"
            ) from None
        raise Ended(str(said.get("ended")), str(said.get("sentence")))
