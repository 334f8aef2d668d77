"""Ranks as forks of the process of a test, which meet at a port of this machine."""

import os
import signal
import socket
from contextlib import contextmanager

from paddle_tfm.train.meeting import Address, join, listen, meet
from paddle_tfm.train.members import DONE, FAILED
from paddle_tfm.train.rank import Rank

FACTS = {"version": ["this"]}


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address("127.0.0.1", server.getsockname()[1])


def forked(function):
    """The process that calls `function`; its exit status is 0, or 2 where that raises."""
    pid = os.fork()
    if pid:
        return pid
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        function()
        os._exit(0)
    except BaseException as error:
        os.write(1, f"[{type(error).__name__}] {error}\n".encode())  # at once: another rank may write too
        os._exit(2)


@contextmanager
def other_ranks(registry, size, stop=lambda: False):
    """What rank 0, this process, has of the others, which serve until the block ends."""
    address = free_address()
    listener = listen(address)

    def serve(rank):
        listener.close()
        Rank(join(address, rank, size, FACTS), registry, stop).serve()

    pids = [forked(lambda rank=rank: serve(rank)) for rank in range(1, size)]
    ranks = None
    try:
        ranks = meet(listener, FACTS, size)
        ranks.pids = pids
        yield ranks
        ranks.close(DONE)
    finally:
        if ranks is not None:
            ranks.close(FAILED, "the test failed")
        for pid in pids:
            os.waitpid(pid, 0)
