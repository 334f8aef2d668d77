"""What another rank has of rank 0: it waits for what that says, and ends with it."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import paddle
from safetensors import numpy as safetensors

from paddle_tfm.language import _
from paddle_tfm.train.ranks import connections
from paddle_tfm.train.ranks.group import FAILED, VERDICT, Arrays, Group
from paddle_tfm.train.ranks.meeting import Address, Facts, Message


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
        text = _(
            "rank 0 ({address}) is lost: it has ended, or cannot be reached; what is saved is there, and --resume "
            "continues it with any number of processes"
        )
        return text.format(address=self.address)

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
