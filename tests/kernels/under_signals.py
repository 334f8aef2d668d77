"""python under_signals.py python|system ARGUMENTS: paddle-tfm, and a signal every half millisecond, in forks too.

The handler is Python's, or one of the system's kind; neither has a stack of its own.
"""

import ctypes
import os
import signal
import sys

from each_kernel import SA_RESTART, handle, libc

from paddle_tfm.__main__ import main

count = 0


def counted(*_):
    global count
    count += 1


def begin():
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)


signal.signal(signal.SIGALRM, counted)
if sys.argv.pop(1) == "system":
    handle(signal.SIGALRM, ctypes.cast(libc.getpid, ctypes.c_void_p).value, SA_RESTART)  # which does nothing
os.register_at_fork(after_in_child=begin)  # a fork inherits the handler, and no timer
begin()
try:
    main()
finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(count, "signals")
