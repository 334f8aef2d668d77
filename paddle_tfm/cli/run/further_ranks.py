"""The processes of ranks other than 0: forks of the one that the user started, or that one itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from paddle_tfm.cli import complain
from paddle_tfm.cli.common import note
from paddle_tfm.errors import UserError
from paddle_tfm.language import _

if TYPE_CHECKING:
    from paddle_tfm.registry import Registry
    from paddle_tfm.train.ranks.meeting import Address, Facts
    from paddle_tfm.train.ranks.member import Member

INTERRUPTED = 130


def _joined(address: Address, rank: int, size: int, facts: Facts, say: Callable[[str, str], None]) -> Member:
    """What a rank has of the others. As soon as rank 0 says how the training ended, that is given to `say`, and this
    process ends.

    Raises:
        UserError: nobody answers at the address.
    """
    from paddle_tfm.train.ranks.group import DONE, STOPPED
    from paddle_tfm.train.ranks.member import Member

    def ended(how: str, sentence: str) -> NoReturn:
        say(how, sentence)
        sys.stderr.flush()
        os._exit({DONE: 0, STOPPED: INTERRUPTED}.get(how, 2))

    return Member(rank, size, address, facts, ended)


def serve_here(address: Address, rank: int, size: int, facts: Facts, registry: Registry) -> NoReturn:
    """Serve rank 0 in the process that the user started, which asks it to stop where the user wants to, and ends as the
    training does.

    Raises:
        UserError: nobody answers at the address.
    """
    from paddle_tfm.train.ranks.group import DONE, FAILED, STOPPED
    from paddle_tfm.train.ranks.member import ask_to_stop
    from paddle_tfm.train.ranks.rank import Rank

    may_ask = False

    def signalled(number: int) -> None:
        nonlocal may_ask
        if not may_ask:
            os._exit(128 + number)
        may_ask = False
        note(_("Asking rank 0 to stop after this step, with a checkpoint … (again: this process ends at once)"))
        ask_to_stop(address)

    def say(how: str, sentence: str) -> None:
        if how == DONE:
            note(_("The training has ended; its runs are on the machine of {address}.").format(address=address))
        elif how == STOPPED:
            text = _("The training was stopped, with a checkpoint on the machine of {address}; --resume continues it.")
            note(text.format(address=address))
        else:
            complain(sentence)

    note(_("Rank {rank} of {size}: serving rank 0 at {address}").format(rank=rank, size=size, address=address))
    _on_signals(signalled)
    member = _joined(address, rank, size, facts, say)
    may_ask = True
    try:
        Rank(member, registry).serve()
    except UserError as error:
        member.ended(FAILED, str(error))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # Python ends badly, while a thread is in the store's code


def _on_signals(act: Callable[[int], None]) -> None:
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


def fork(address: Address, rank: int, size: int, facts: Facts, registry: Registry) -> int:
    """The process of another rank. It says nothing of what the process that was started says."""
    from paddle_tfm import processes, runtime

    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    with processes.signals_wait():
        if pid := os.fork():
            return pid
        status = 1
        try:
            processes.end_with_parent(parent)  # in whatever it waits for: rank 0 alone says what became of the run
            for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to all processes; rank 0 decides
                signal.signal(number, signal.SIG_IGN)
            processes.set_threads(runtime.threads())
            from paddle_tfm.train.ranks.rank import Rank

            Rank(_joined(address, rank, size, facts, lambda how, sentence: None), registry).serve()
        except UserError:
            status = 2
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
