"""`paddle-tfm run --nproc` and `--nodes`: one run by several processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import TINY, call

from paddle_tfm.cli.run import ranks

pytestmark = pytest.mark.reliability

RECIPE = ("reverse", *TINY, "model.norm=batch", "seeds=[1]")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(folder):
    return [json.loads(line) for line in (folder / "default/seed-1/metrics.jsonl").read_text().splitlines()]


def started(*arguments):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "paddle_tfm", "run", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_two_processes_train_two_runs_as_one_does(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # of which each of the two has one
    recipe = ("reverse", *TINY, "model.norm=batch", "seeds=[1, 2]")
    assert call("run", *recipe, "--cell=default/seed-1", "--out=one").status == 0
    done = call("run", *recipe, "--nproc=2", "--out=two")
    assert done.status == 0, done.err
    one, two = rows(tmp_path / "one"), rows(tmp_path / "two")
    assert [row["step"] for row in two] == [row["step"] for row in one]  # logged by rank 0 alone
    for row, other in zip(one, two):
        values, other_values = (each.get("evaluation", each)["loss"] for each in (row, other))
        assert other_values == pytest.approx(values, rel=1e-5)
    folder = tmp_path / "two/default/seed-1"
    identity = json.loads((folder / "identity.json").read_text())
    assert (identity["processes"], identity["threads"]) == (2, 1)
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert json.loads((folder / "about.json").read_text())["trainings"][0]["processes"] == 2
    assert (tmp_path / "two/comparison.html").is_file()


def test_a_lost_process_ends_the_command_with_a_sentence_and_one_goes_on(tmp_path):
    recipe = (*RECIPE, "train.steps=60", "evaluate.every=30", "--cell=default/seed-1")
    command = started(*recipe, "train.gradient_norms=1", "--nproc=2", "--out=out")
    log = tmp_path / "out/default/seed-1/metrics.jsonl"
    while not (log.exists() and log.read_text().count("\n") > 5):
        assert command.poll() is None
        time.sleep(0.02)
    (child,) = children(command.pid)
    os.kill(child, signal.SIGKILL)
    _, err = command.communicate(timeout=20)
    assert command.returncode == 2 and "Traceback" not in err
    (sentence,) = [line for line in err.splitlines() if line.startswith("Error: ")]
    step = int(
        re.search(r"rank 1 \(process \d+ on .*\), of 2, is lost: .* default/seed-1 is saved at step (\d+)\.", sentence)[
            1
        ]
    )
    assert (
        "Continue, with any number of processes, with: paddle-tfm run reverse" in sentence and "--nproc=2" in sentence
    )
    done = call("run", *recipe, "train.gradient_norms=1", "--out=out", "--resume")
    assert done.status == 0, done.err
    assert f"resumed at step {step}" in done.err
    assert (
        "its batches were those of 2 processes (--nproc, --nodes), and now are of 1: its last bits may differ"
        in done.err
    )
    assert [row["step"] for row in rows(tmp_path / "out") if "loss" in row] == list(range(1, 61))


def test_two_machines_need_one_command_each_and_one_folder(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    options = (*RECIPE, "--cell=default/seed-1", "--nodes=2", f"--address={address}")
    other = started(*options, "--node=1", "--out=elsewhere")
    done = call("run", *options, "--node=0", "--out=out")
    _, err = other.communicate(timeout=20)
    assert done.status == 0 and other.returncode == 0, (done.err, err)
    assert err.splitlines() == [
        f"Rank 1 of 2: serving rank 0 at {address}",
        f"The training has ended; its runs are on the machine of {address}.",
    ]
    assert (tmp_path / "out/default/seed-1/results.json").is_file() and not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_no_rank_outlives_a_command_that_ends_before_they_have_met(number, status):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"  # where nobody will answer
    command = started(*RECIPE, "--nproc=2", "--nodes=2", "--node=1", f"--address={address}")
    assert command.stderr.readline() == f"Rank 2 of 4: serving rank 0 at {address}\n"
    (child,) = children(command.pid)
    time.sleep(0.3)  # both try to connect
    command.send_signal(number)
    end = time.monotonic() + 20  # they would wait for 300 s
    while (is_there := Path(f"/proc/{child}").exists()) and time.monotonic() < end:
        time.sleep(0.02)
    if is_there:
        os.kill(child, signal.SIGKILL)
    assert not is_there and command.wait(timeout=20) == status


def test_a_process_that_ends_before_it_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(ranks, "_serve", lambda *arguments: os._exit(7))
    done = call("run", *RECIPE, "--nproc=2", "--out=out")
    assert done.status == 2
    assert re.search(r"one of 2 ranks, ended with exit status 7 before the training began", done.err)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--nproc=0"], "0 is not in the range x>=1"),
        (["--nproc=100000"], "--nproc=100000: must be at most "),
        (["--nproc=2", "--workers=2"], "--nproc trains one run after another, each by several processes; --workers trains"),
        (["--nproc=2", "--executor=ray"], "--nproc trains one run after another, each by several processes; --executor trains"),
        (["--nproc=2", "--dry-run"], "--dry-run measures one process, and --nproc trains with several: use one of the two"),
        (["--nproc=2", "train.shards=2"], "train.shards=2 promises the same bits on any number of cores, and --nproc "),
        (["--nodes=2"], "several machines need all of --nodes, --node and --address, but --node and --address are missing"),
        (["--nodes=2", "--node=2", "--address=h:1"], "--node must be from 0 to 1 with --nodes=2, but is 2"),
        (["--nodes=2", "--node=0", "--address=h"], "--address h: must look like HOST:PORT, for instance 10.0.0.1:29500"),
        (["--nodes=2", "--node=0", "--address=192.0.2.1:29500"], "--address 192.0.2.1:29500: rank 0 cannot listen there"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_one_sentence(options, sentence, tmp_path):
    done = call("run", *RECIPE, "--out=out", *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err
