"""What rank 0 has of the other ranks: it says what they do, and sees who is there."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import numpy as np
import paddle
from safetensors import numpy as safetensors

from paddle_tfm.errors import UserError
from paddle_tfm.language import _, enumerated
from paddle_tfm.train.ranks import connections, meeting
from paddle_tfm.train.ranks.group import DONE, FAILED, LEAVE, SETTLE, Arrays, Group, RankLost
from paddle_tfm.train.ranks.meeting import Address, Facts, Message


class Ranks(Group):
    """What rank 0 has of the others."""

    def __init__(self, size: int, address: Address):
        super().__init__(0, size, address, address.store(keeper=True))
        self.names: dict[int, str] = {}
        self.pauses = self.runs = 0
        self.paused, self.closed, self.asked_to_stop = True, False, False
        self.lost = ""  # who is, a sentence
        self.gone: list[int] = []  # and their numbers
        self.connections: dict[int, socket.socket] = {}
        self.engines: list[socket.socket] = []
        self.thread = threading.Thread(target=self._look, daemon=True)

    def meet(self, facts: Facts, report: Callable[[str], None] = lambda text: None) -> Ranks:
        """Wait for all others, and make the process group. Returns itself.

        Args:
            facts: what every rank must have alike, values by name. report: gets a sentence on who is waited for.
        Raises:
            UserError: one has other facts; all are told. Or some did not come in time, or are lost.
        """
        try:
            hellos = self._arrivals(facts, report)
        except UserError as error:
            self.close(FAILED, str(error))
            raise
        self.names = {rank: meeting.name_of(hello) for rank, hello in hellos.items()}
        ports = {port: rank for rank, hello in hellos.items() for port in hello["ports"]}
        for each in connections.of_this_process():
            if each.getsockname()[1] == self.address.port and (rank := ports.get(each.getpeername()[1])):
                self.connections[rank] = connections.asked_for(each)
        before = {connections.inode(each) for each in connections.of_this_process()}
        self.thread.start()
        where = Address.free(self.address.host)
        self.store.set("welcome", json.dumps({"meeting": str(where)}))
        connections.use_interface_of(self.address.host)
        self._start_while_all_are_there(str(where))
        self.engines = [each for each in connections.of_this_process() if connections.inode(each) not in before]
        return self

    def _arrivals(self, facts: Facts, report: Callable[[str], None]) -> dict[int, Message]:
        """What every other rank says of itself. Raises UserError."""
        there: dict[int, Message] = {}
        end, said = time.monotonic() + meeting.WAIT, time.monotonic() + 5.0
        while missing := [rank for rank in range(1, self.size) if rank not in there]:
            if time.monotonic() > end:
                raise UserError(
                    _("{ranks} did not come within {seconds:g} s").format(
                        ranks=meeting.listed(missing, self.size), seconds=meeting.WAIT
                    )
                )
            if time.monotonic() > said:
                report(_("Waiting for {ranks}").format(ranks=meeting.listed(missing, self.size)))
                said = end
            if self.store.add("came", 0) == len(there):
                time.sleep(0.02)
                continue
            hello = json.loads(self.store.get(f"hello/{len(there) + 1}"))
            meeting.require_alike(hello, facts)
            if hello["rank"] in there:
                raise UserError(
                    _("{process} came twice; give each machine a --node of its own").format(
                        process=meeting.name_of(hello)
                    )
                )
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
        ranks = {each.fileno(): rank for rank, each in self.connections.items()}
        for number in ranks:
            poller.register(number, select.POLLRDHUP | select.POLLHUP)
        while not self.closed:
            if (events := poller.poll(500)) and not self.closed:
                rank = ranks[events[0][0]]
                self.gone.append(rank)
                why = _("it has ended, or cannot be reached")
                if store.add(f"failed/{rank}/there", 0):
                    why = store.get(f"failed/{rank}").decode()
                text = _("{process}, of {size}, is lost: {why}")
                self.lost = text.format(process=self.names[rank], size=self.size, why=why)
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
        if self.thread.is_alive():  # Python ends badly, while a thread is in the store's code
            self.thread.join()
        if not self.lost:
            self.store.set("ended", json.dumps({"how": how, "sentence": sentence}))
        end = time.monotonic() + LEAVE
        for connection in [each for rank, each in self.connections.items() if rank not in self.gone]:
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
            names = enumerated([self.names[rank] for rank in silent] or [_("a rank")])
            text = _("{processes}, of {size}, stood still for 30 s ({error})")
            self.lost = text.format(processes=names, size=self.size, error=error)
            self.store.set("ended", json.dumps({"how": FAILED, "sentence": self.lost}))
        raise RankLost(self.lost)
