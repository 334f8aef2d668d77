"""Sweeps with a store, each by a process of its own, as the command line starts them; with a shorter patience."""

import os
import subprocess
import sys
from pathlib import Path

from recipe_text import TINY_MODEL

RECIPE = [
    "run", "base", *TINY_MODEL, "model.max_length=10", "train.max_tokens=128", "evaluate.examples=5",
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}",
    "model.dropout=0.1", "train.steps=8", "evaluate.every=2", "train.average=2",
]  # fmt: skip
VARIANTS = "variants={pre: {}, post: {model.placement: post}}"
HERE = Path(__file__).parent
SETTINGS = {"OMP_NUM_THREADS": "1", "NO_COLOR": "1", "PYTHONPATH": f"{HERE}:{HERE.parent}"}
# A listener that does something once, after a step, as soon as the store has the checkpoint of step 4.
LISTENER = """
import os, shutil, time
from pathlib import Path
from paddle_tfm import hookimpl
from paddle_tfm.sweep.store import Store
from paddle_tfm.sweep.stored_run import StoredRun

@hookimpl
def on_step_end(run, step):
    if step == 5:
        stored, end = StoredRun(Store({url!r}), run.name), time.monotonic() + 60
        while (state := stored.look()) is None or state.step < 4:
            assert time.monotonic() < end
            time.sleep(0.05)
        {line}
"""


def start(arguments, folder):
    """`paddle-tfm ARGUMENTS` in a folder, with signs of life twice a second."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "stored_sweeps", *map(str, arguments)]
    pipe, environment = subprocess.PIPE, {**os.environ, **SETTINGS}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def run(arguments, folder):
    """Its exit status and what it wrote to stderr, without a traceback."""
    process = start(arguments, folder)
    _, err = process.communicate(timeout=300)
    assert "Traceback" not in err, err
    return process.returncode, err


def listener(folder, url, line):
    """A plugin file whose listener does `line`."""
    file = folder / "listener.py"
    file.write_text(LISTENER.format(url=url, line=line))
    return f"--plugin={file}"


if __name__ == "__main__":
    from paddle_tfm.cli import main
    from paddle_tfm.sweep import store_claim, uploads

    store_claim.BEAT_SECONDS, store_claim.SILENT_SECONDS, uploads.PAUSES = 0.5, 3.0, (0.1, 0.1)
    main(sys.argv[1:])
