"""A plugin in the small sweeps that an executor is tried on: it writes down which runs begin, and where a file in the
sweep's folder says so, it makes them slow or ends one as a kill does."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text, read_json, write_whole
from paddle_tfm.hookspecs import hookimpl
from paddle_tfm.testing.trials.interrupted import AT

ORDERS, STARTS = "orders.json", "starts.txt"
COMMAND = "PADDLE_TFM_TRIAL"  # set in the process of a cell's command, whose start is written down already
SLOW_SECONDS = 0.5  # a step


def order(sweep: Path, slow: bool = False, killed: str = "") -> None:
    """Say how the runs of a sweep train from now on: slowly, and `killed`, the name of one, to its death."""
    write_whole(sweep / ORDERS, json_text({"slow": slow, "killed": killed, "pid": os.getpid()}))


@hookimpl
def on_run_start(run):
    if COMMAND not in os.environ:
        with (run.folder.parents[1] / STARTS).open("a", encoding="utf-8") as file:
            file.write(f"{time.time()} {run.name}\n")


@hookimpl
def on_step_end(run, step, metrics):
    orders = read_json(run.folder.parents[1] / ORDERS)
    if orders["slow"]:
        time.sleep(SLOW_SECONDS)
    if step == AT and run.name == orders["killed"]:
        if os.getpid() == orders["pid"]:
            raise UserError(f"{run.name} is to fail")
        os.kill(os.getpid(), signal.SIGKILL)
