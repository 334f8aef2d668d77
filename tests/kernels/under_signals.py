"""python under_signals.py python|system ARGUMENTS: paddle-tfm, and a signal every half millisecond, in forks too.

The handler is Python's, or one of the system's kind; neither has a stack of its own.
"""

import ctypes
import os
import signal
import sys

from paddle_tfm.__main__ import main

SA_RESTART = 0x10000000
libc, count = ctypes.CDLL(None, use_errno=True), 0


def counted(*_):
    global count
    count += 1


def handle(where):
    """Have the machine code at `where` called at SIGALRM, by the system and not by Python."""

    class Action(ctypes.Structure):
        _fields_ = [
            ("where", ctypes.c_void_p),
            ("mask", ctypes.c_uint64 * 16),
            ("flags", ctypes.c_int),
            ("restorer", ctypes.c_void_p),
        ]

    action = Action(where, (ctypes.c_uint64 * 16)(), SA_RESTART, None)
    if libc.sigaction(signal.SIGALRM, ctypes.byref(action), None):
        raise OSError(ctypes.get_errno(), "sigaction")


def begin():
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)


signal.signal(signal.SIGALRM, counted)
if sys.argv.pop(1) == "system":
    handle(ctypes.cast(libc.getpid, ctypes.c_void_p).value)  # which does nothing
os.register_at_fork(after_in_child=begin)  # a fork inherits the handler, and no timer
begin()
try:
    main()
finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(count, "signals")
