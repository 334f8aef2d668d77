"""Two hundred runs on two workers, some of which are killed at random moments, and once the sweep itself: every run ends
once, with the bits of a sweep that trained them one after another, and nothing is left behind."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recipe_text import TINY_MODEL

from paddle_tfm.testing.same_runs import differences

CELLS, KILLS = 200, 20
COMMAND = [
    *(sys.executable, "-m", "paddle_tfm", "run", "base", "--device=cpu", *TINY_MODEL, "model.max_length=10"),
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}",
    *("train.max_tokens=128", "train.steps=40", "evaluate.every=10", "evaluate.examples=5", "model.dropout=0.1"),
    "variants={pre: {}, post: {model.placement: post}, rms: {model.norm: rms}, batch: {model.norm: batch}}",
    f"seeds={list(range(1, CELLS // 4 + 1))}",
]  # fmt: skip
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


def start(folder, *options):
    with (folder.parent / f"{folder.name}.log").open("a") as log:
        return subprocess.Popen([*COMMAND, f"--out={folder}", *options], env=ENVIRONMENT, stdout=log, stderr=log)


def processes_of(folder):
    """pid → parent of every process that works in `folder`."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"--out={folder}".encode() in (process / "cmdline").read_bytes().split(b"\0"):
                state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    found[int(process.name)] = int(parent)
        except OSError:
            continue  # gone meanwhile
    return found


def resident(pid):
    """MiB of memory that process `pid` holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def finished(folder):
    return len(list(folder.glob("*/*/results.json")))


def watched(process, folder, draw, kills, until=CELLS):
    """Wait for the end of a sweep, or for `until` finished runs; kill a worker at random moments. Returns how many were
    killed, and, for each look, how much memory and how many open files the sweep's process had."""
    killed, looks, start = 0, [], finished(folder)
    due = sorted(draw.uniform(start, until - 10) for _ in range(kills))
    while process.poll() is None and (until == CELLS or finished(folder) < until):
        looks.append((resident(process.pid), len(list(Path(f"/proc/{process.pid}/fd").iterdir()))))
        workers = [pid for pid, parent in processes_of(folder).items() if parent == process.pid]
        if killed < kills and finished(folder) >= due[killed] and workers:
            time.sleep(draw.uniform(0, 0.3))
            os.kill(draw.choice(workers), signal.SIGKILL)
            killed += 1
        time.sleep(0.05)
    return killed, looks


def is_flat(looks):
    """Whether memory and open files of a sweep's process are at its end what they were after a quarter of it."""
    (early, files), (late, files_late) = looks[len(looks) // 4], looks[-2]
    print(f"memory of the sweep: {early:.0f} → {late:.0f} MiB, open files {files} → {files_late}")
    return late < 1.05 * early + 2 and files_late <= files + 2


@pytest.mark.slow
def test_two_hundred_runs_some_killed_end_once_each_with_the_bits_of_a_serial_sweep(tmp_path):
    serial, parallel, draw = tmp_path / "serial", tmp_path / "parallel", random.Random(18)
    before = time.monotonic()
    assert start(serial, "--workers=1").wait() == 0
    seconds = time.monotonic() - before
    runs = sorted(file.parent.relative_to(serial) for file in serial.glob("*/*/results.json"))
    trained = sum(json.loads((serial / run / "results.json").read_text())["wall_seconds"] for run in runs)
    print(
        f"{len(runs)} runs one after another: {seconds:.0f} s, of which not in a training {1 - trained / seconds:.1%}"
    )

    first = start(parallel, "--workers=2")
    killed, _ = watched(first, parallel, draw, KILLS // 2, until=CELLS // 2)
    first.kill()
    first.wait()
    end = time.monotonic() + 30
    while processes_of(parallel) and time.monotonic() < end:
        time.sleep(0.1)
    assert processes_of(parallel) == {}  # workers whose sweep is gone save, and end
    second = start(parallel, "--workers=2", "--resume")
    more, looks = watched(second, parallel, draw, KILLS // 2)
    assert killed + more == KILLS
    assert second.wait() == 1  # some were killed
    assert is_flat(looks)
    assert start(parallel, "--workers=2", "--resume").wait() == 0, (tmp_path / "parallel.log").read_text()[-3000:]

    assert len(runs) == CELLS
    assert [run for run in runs if differences(serial / run, parallel / run)] == []
    assert processes_of(parallel) == {}
    left = [file for file in parallel.rglob("*") if file.name.endswith((".partial", ".new", ".old"))]
    assert left + list(parallel.rglob("claim.json")) == []
    trainings = [len(json.loads((parallel / run / "about.json").read_text())["trainings"]) for run in runs]
    print("trainings of a run:", {number: trainings.count(number) for number in sorted(set(trainings))})
