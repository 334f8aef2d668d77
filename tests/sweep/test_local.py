"""Runs side by side in processes: the same numbers, plugins that survive the trip, and ends that leave nothing
behind."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from small_sweeps import PLUGIN, VARIANTS, logs, run, start

pytestmark = pytest.mark.reliability


# One process tries every way, because to start one with Paddle takes longer than these trainings. Forks come first,
# from a process that has trained nothing; where processes cannot fork, workers are new processes; then it trains by
# itself.
EVERY_WAY = """
import sys
from pathlib import Path
from paddle_tfm.runtime import load_paddle
load_paddle()
from paddle_tfm import processes
from paddle_tfm.cli import main

out, *arguments = sys.argv[1:]
for name, workers, can_fork in [("forked", 2, True), ("started", 2, False), ("one", 1, True)]:
    processes.can_fork = lambda: can_fork
    try:
        main([*arguments, "--out", str(Path(out, name)), "--workers", str(workers)])
    except SystemExit as end:
        for stream in (sys.stdout, sys.stderr):
            print("\\f" if end.code == 0 else f"{name} ended with {end.code}", file=stream, flush=True)
"""


def test_the_number_of_workers_changes_nothing(tmp_path):
    plugin = tmp_path / "halved.py"
    plugin.write_text(PLUGIN)
    arguments = [VARIANTS, "--plugin", plugin, "model.norm={name: halved, by: 0.7}"]
    code, *streams = run(*arguments, program=("-c", EVERY_WAY, str(tmp_path)))
    assert code == 0, streams[1]
    ways = list(zip(*(stream.split("\f\n") for stream in streams), strict=True))
    assert len(ways) == 4 and ways.pop() == ("", ""), streams[1]
    for out, err in ways:
        assert "In what post differs from pre" in out
        assert err.count("step      6") == 2
    one = logs(tmp_path / "one")
    assert len(one) == 2
    assert one == logs(tmp_path / "forked")
    assert one == logs(tmp_path / "started")


def test_what_a_worker_complains_of_is_told_in_a_sentence(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\nonly one side\n")
    task = f"task={{name: parallel, train: {tmp_path}/pairs.tsv, valid: {tmp_path}/pairs.tsv}}"
    code, _, err = run(VARIANTS, task, "--workers", 2, "--out", tmp_path / "out")
    assert code == 2
    assert "Error:" in err and "pairs.tsv" in err and "Traceback" not in err


def children(pid):
    """The worker processes of `pid`."""
    workers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                workers.append(folder)
        except OSError:
            continue  # gone meanwhile
    return workers


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("waited in vain")


@pytest.fixture
def long_run(tmp_path):
    """A sweep of two workers in the middle of their training."""
    process = start(VARIANTS, "train.steps=100000", "evaluate.every=5", "--workers", 2, "--out", tmp_path / "out")
    wait_until(lambda: len(list((tmp_path / "out").glob("*/*/checkpoints/last/state.json"))) == 2)
    yield process
    process.kill()
    process.communicate()


def test_an_interrupted_sweep_saves_every_run(long_run, tmp_path):
    workers = children(long_run.pid)
    long_run.send_signal(signal.SIGINT)
    _, err = long_run.communicate(timeout=60)
    assert long_run.returncode == 130
    assert "pre/seed-1" in err and "post/seed-1" in err and "--resume" in err
    assert len(workers) == 2
    assert not any(folder.exists() for folder in workers)


def test_a_killed_worker_costs_its_run_only_and_another_takes_its_place(tmp_path):
    """Of four runs on two workers one is killed as it trains; those that wait are trained all the same, and the fourth
    on resume."""
    out, steps = tmp_path / "out", ["train.steps=120", "evaluate.every=30"]
    arguments = [VARIANTS, *steps, "seeds=[1, 2]", "--workers", 2, "--out", out]
    process = start(*arguments)
    begun = wait_until(lambda: list(out.glob("*/*/checkpoints/last/state.json")))[0].parents[2]
    victim = json.loads((begun / "claim.json").read_text())["pid"]
    os.kill(victim, signal.SIGKILL)
    _, err = process.communicate(timeout=90)
    name = f"{begun.parent.name}/{begun.name}"
    assert process.returncode == 1, err
    assert f"{name} failed: the process that trained it was ended by SIGKILL; if memory ran out, use fewer" in err
    assert f"1 of 4 runs failed: {name}. Train them again with: paddle-tfm run base" in err
    assert len(list(out.glob("*/*/results.json"))) == 3
    code, _, err = run(*arguments, "--resume")
    assert code == 0 and err.count("is finished already") == 3, err
    code, _, err = run(*arguments[:-1], tmp_path / "whole", "--cell", name)
    (log,) = (tmp_path / "whole").rglob("metrics.jsonl")
    assert code == 0 and log.read_bytes() == (begun / "metrics.jsonl").read_bytes(), err


def test_orphans_end(long_run):
    workers = children(long_run.pid)
    long_run.kill()
    assert len(workers) == 2
    wait_until(lambda: not any(folder.exists() for folder in workers))
