"""What a task of Ray does on the node that it came to: it trains one run, in a process of its own.

Only the standard library, for Ray brings these functions to a worker that may know nothing of paddle_tfm.
"""

import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

POLL_SECONDS = 0.2
LAST_LINES = 12  # of the output of a run
# Before the run's program takes its place, the process asks to be killed with its parent, a worker of Ray. 1 is
# PR_SET_PDEATHSIG, 9 SIGKILL.
PROGRAM = """
import ctypes, os, sys
parent, command = int(sys.argv[1]), sys.argv[2:]
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != parent:
    sys.exit("the worker of Ray is gone")
try:
    os.execvp(command[0], command)
except OSError as error:
    sys.exit(f"{command[0]} cannot be started on this node: {error.strerror}")
"""


def train(command, environment, folder, sweep, num_cpus, num_gpus):
    """Run a command in a folder to its end, and return (its exit status, its last lines, the name of this node).

    `ray.cancel` asks it to stop, by SIGTERM. Whatever ends the worker ends it too.

    Args:
        command, environment: of a cell. sweep: the folder of its sweep. num_cpus, num_gpus: what Ray set aside for it.
    Raises:
        NotADirectoryError: this node has no such folder, or does not see that of the sweep.
    """
    for needed in (folder, sweep):
        if not os.path.isdir(needed):  # noqa: PTH112  # one import less in every worker
            raise NotADirectoryError(f"{needed} is not there on {platform.node()}")
    variables = {"OMP_NUM_THREADS": str(max(1, int(num_cpus))), **environment}
    if num_gpus and "CUDA_VISIBLE_DEVICES" in os.environ:  # which of the node's Ray chose
        variables["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    stops = []
    # `ray.cancel` sends itself an interrupt, which nobody would see where SIGINT is ignored, as under `nohup … &`.
    before = signal.signal(signal.SIGINT, lambda number, frame: stops.append(number))
    try:
        with tempfile.TemporaryFile() as output:
            program = [sys.executable, "-ISc", PROGRAM, str(os.getpid()), *command]
            process = subprocess.Popen(
                program, env=variables, cwd=folder, stdout=output, stderr=output, start_new_session=True
            )
            try:
                wait(process, stops)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # what it may have left
                process.wait()
            output.seek(0)
            lines = output.read().decode("utf-8", errors="replace").splitlines()[-LAST_LINES:]
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode, lines, platform.node()


def wait(process, stops):
    """Wait for the end of a process, and pass on each request to stop."""
    while process.poll() is None:
        if stops:
            stops.clear()
            process.send_signal(signal.SIGTERM)
        time.sleep(POLL_SECONDS)
