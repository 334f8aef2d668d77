"""How a process ended, in words, from the status that the system gives."""

from __future__ import annotations

import signal


def how_it_ended(status: int, against_memory: str = "") -> str:
    """`was ended by SIGKILL`, `ended with exit status 2`.

    Args:
        status: negative, or above 128 as shells say it, where a signal ended the process.
        against_memory: what to do where memory ran out; it follows SIGKILL, by which the system ends such a process.
    """
    if not is_signal(status):
        return f"ended with exit status {status}"
    number = _signal(status)
    names = {each.value: each.name for each in signal.Signals}  # real-time signals have no names
    hint = f"; if memory ran out, {against_memory}" if against_memory and number == signal.SIGKILL else ""
    return f"was ended by {names.get(number, f'signal {number}')}{hint}"


def is_signal(status: int) -> bool:
    """Whether a status says that a signal ended the process."""
    return _signal(status) in signal.valid_signals()


def _signal(status: int) -> int:
    return -status if status < 0 else status - 128  # a shell says of its child's signal 128 and the number
