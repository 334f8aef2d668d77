"""How a process ended is said as the system said it, and memory is named where it may be the cause."""

import signal
import subprocess
import sys

import pytest

from paddle_tfm.exit_status import how_it_ended, is_signal

HINT = "use fewer --workers"


def status_of(code: str) -> int:
    """The exit status of a process of Python that runs this."""
    return subprocess.run([sys.executable, "-c", f"import os, signal; {code}"]).returncode


@pytest.mark.parametrize(
    "code, sentence",
    [
        ("os._exit(2)", "ended with exit status 2"),
        ("os.kill(os.getpid(), signal.SIGKILL)", f"was ended by SIGKILL; if memory ran out, {HINT}"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was ended by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 5)", f"was ended by signal {signal.SIGRTMIN + 5}"),
    ],
)
def test_how_a_process_ended_is_said_in_words(code, sentence):
    assert how_it_ended(status_of(code), HINT) == sentence


def test_a_shell_says_a_signal_by_a_number_above_128():
    status = subprocess.run(["sh", "-c", 'sh -c "kill -9 \\$\\$"; exit $?']).returncode
    assert status == 137 and is_signal(status)
    assert how_it_ended(status) == "was ended by SIGKILL"
    assert not is_signal(127) and not is_signal(0) and not is_signal(255)
