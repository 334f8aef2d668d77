"""`paddle-tfm run --nproc`, `--nodes` and launchers: one run by several processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import TINY, call

from paddle_tfm.cli.run.request import Launched

pytestmark = pytest.mark.reliability

RECIPE = ("reverse", *TINY, "model.norm=batch", "seeds=[1]")
CELL = (*RECIPE, "--cell=default/seed-1")
LONG = (*CELL, "train.steps=4000", "evaluate.every=4000", "train.gradient_norms=1")
PADDLE_TFM = [sys.executable, "-m", "paddle_tfm"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(folder):
    return [json.loads(line) for line in (folder / "default/seed-1/metrics.jsonl").read_text().splitlines()]


def started(*arguments, before=(), cwd=None, **variables):
    """The command in a process of its own."""
    command = [*before, *PADDLE_TFM, "run", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | variables, cwd=cwd, **pipes)


def ended(*commands, seconds=60):
    """Status and standard error of each."""
    outcomes = [command.communicate(timeout=seconds) for command in commands]
    return [(command.returncode, err) for command, (_, err) in zip(commands, outcomes)]


def free_address(host="127.0.0.1"):
    with socket.create_server((host, 0)) as server:
        return f"{host}:{server.getsockname()[1]}"


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_steps(command, folder, count=5):
    log = folder / "default/seed-1/metrics.jsonl"
    while not (log.exists() and log.read_text().count("\n") > count):
        assert command.poll() is None, command.communicate()
        time.sleep(0.02)


def test_two_processes_train_two_runs_as_one_does(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # of which each of the two has one
    recipe = ("reverse", *TINY, "model.norm=batch", "seeds=[1, 2]")
    assert call("run", *recipe, "--cell=default/seed-1", "--out=one").status == 0
    ((status, err),) = ended(started(*recipe, "--nproc=2", "--out=two"))
    assert status == 0, err
    one, two = rows(tmp_path / "one"), rows(tmp_path / "two")
    assert [row["step"] for row in two] == [row["step"] for row in one]  # logged by rank 0 alone
    for row, other in zip(one, two):
        values, other_values = (each.get("evaluation", each)["loss"] for each in (row, other))
        assert other_values == pytest.approx(values, rel=1e-5)
    folder = tmp_path / "two/default/seed-1"
    identity = json.loads((folder / "identity.json").read_text())
    assert (identity["processes"], identity["threads"]) == (2, 1)
    assert json.loads((folder / "about.json").read_text())["trainings"][0]["processes"] == 2
    assert (tmp_path / "two/comparison.html").is_file()


def test_a_lost_process_ends_the_command_with_a_sentence_and_one_goes_on(tmp_path):
    recipe = (*CELL, "train.steps=60", "evaluate.every=30", "train.gradient_norms=1")
    command = started(*recipe, "--nproc=2", "--out=out")
    wait_for_steps(command, tmp_path / "out")
    (child,) = children(command.pid)
    os.kill(child, signal.SIGKILL)
    ((status, err),) = ended(command, seconds=10)
    assert status == 2 and "Traceback" not in err
    (sentence,) = [line for line in err.splitlines() if line.startswith("Error: ")]
    found = re.search(
        r"rank 1 \(process \d+ on .*\), of 2, is lost: .* default/seed-1 is saved at step (\d+)\. Continue, with any "
        r"number of processes, with: paddle-tfm run reverse .*--nproc=2",
        sentence,
    )
    done = call("run", *recipe, "--out=out", "--resume")
    assert done.status == 0, done.err
    assert f"resumed at step {found[1]}" in done.err
    assert (
        "its batches were those of 2 processes (--nproc, --nodes), and now are of 1: its last bits may differ"
        in done.err
    )
    assert [row["step"] for row in rows(tmp_path / "out") if "loss" in row] == list(range(1, 61))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to", ["machine 0", "machine 1"])
def test_a_stop_of_either_machine_saves_and_ends_both(tmp_path, number, to):
    address = free_address()
    zero, one = (
        started(*LONG, "--nodes=2", f"--node={node}", f"--address={address}", f"--out={folder}")
        for node, folder in enumerate(("out", "elsewhere"))
    )
    wait_for_steps(zero, tmp_path / "out")
    (zero if to == "machine 0" else one).send_signal(number)
    (status, err), (other_status, other_err) = ended(zero, one, seconds=10)
    assert (status, other_status) == (130, 130), (err, other_err)
    assert "default/seed-1 is saved. Continue with: paddle-tfm run reverse" in err
    assert f"The training was stopped, with a checkpoint on the machine of {address}" in other_err
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "out/default/seed-1/checkpoints/last").is_dir()


NORM = """
from paddle_tfm import hookimpl
from paddle_tfm.protocols import Norm

class Scaled(Norm):
    def __init__(self, d_model):
        super().__init__()

    def forward(self, x, valid=None, positions=None):
        return x / FACTOR

@hookimpl
def register_norms():
    return {"scaled": Scaled}
"""


@pytest.mark.parametrize(
    ("theirs", "factor", "sentence"),
    [
        (["train.steps=7"], 2, r"rank 1 \(process \d+ on .*\) must have the same recipe as rank 0; but only it has train\.steps=7"),
        (["--nproc=2"], 2, r"rank \d \(process \d+ on .*\) must have the same ranks as rank 0; but only it has 4 and --nproc=2, and only rank 0 has 2 and --nproc=1"),
        ([], 3, r"must have the plugins of rank 0, but of these \(there: was, here: is\) .*scaled"),
    ],
)  # fmt: skip
def test_another_recipe_number_or_plugin_on_the_second_machine_is_refused_on_both(tmp_path, theirs, factor, sentence):
    address = free_address()
    options = (*CELL, "model.norm=scaled", "--plugin=scaled.py", "--nodes=2", f"--address={address}", "--out=out")
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder, by in zip(folders, (2, factor)):
        folder.mkdir()
        (folder / "scaled.py").write_text(NORM.replace("FACTOR", f"{by}"))
    zero = started(*options, "--node=0", cwd=folders[0])
    one = started(*options, *theirs, "--node=1", cwd=folders[1])
    (status, err), (other_status, other_err) = ended(zero, one)
    assert (status, other_status) == (2, 2)
    for text in (err, other_err):
        assert re.search(sentence, text), text
        assert "Traceback" not in text


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_no_rank_outlives_a_command_that_ends_before_they_have_met(number, status):
    address = free_address()  # where nobody will answer
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


# ----------------------------------------------------------------------------------------------------------- launchers


def test_paddles_launcher_starts_the_ranks(tmp_path):
    console = shutil.which("paddle-tfm")
    assert console
    launch = [sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node=2", "--log_dir=logs", console]
    done = subprocess.run([*launch, "run", *CELL, "--out=out"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out/default/seed-1/identity.json").read_text())["processes"] == 2
    assert "The training has ended; its runs are on the machine of" in (tmp_path / "logs/workerlog.1").read_text()


def test_variables_of_slurm_number_the_ranks(tmp_path):
    options = (*CELL, f"--address={free_address()}", "--out=out")
    ranks = [started(*options, SLURM_PROCID=f"{rank}", SLURM_STEP_NUM_TASKS="2") for rank in range(2)]
    for status, err in ended(*ranks):
        assert status == 0, err
    assert json.loads((tmp_path / "out/default/seed-1/identity.json").read_text())["processes"] == 2


PADDLE = {"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2"}
SLURM = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}


def test_what_a_launcher_says():
    endpoints = {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:7,10.0.0.2:7", "PADDLE_LOCAL_SIZE": "2"}
    assert Launched.read(PADDLE | endpoints) == Launched("paddle.distributed.launch", 1, 2, 2, "10.0.0.1:7")
    assert Launched.read(PADDLE | endpoints | {"PADDLE_MASTER": "10.0.0.9:8"}).address == "10.0.0.9:8"
    assert Launched.read(SLURM) == Launched("srun", 0, 4)
    assert Launched.read({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}) == Launched("mpirun", 1, 2)
    assert Launched.read({"PMI_RANK": "1", "PMI_SIZE": "2"}) == Launched("mpirun", 1, 2)
    for alone in ({}, {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}):
        assert Launched.read(alone) is None


@pytest.mark.parametrize(
    ("variables", "options", "sentence"),
    [
        (PADDLE, ["--nproc=2"], "paddle.distributed.launch started 2 processes of this command, and --nproc=2 starts others: use one of the two"),
        (SLURM, ["--nodes=2", "--node=0", "--address=h:1"], "srun started 4 processes of this command, and --nodes=2 starts others"),
        (SLURM, [], "srun started 4 processes of this command, but does not say where they meet: give --address HOST:PORT"),
        (SLURM, ["--address=h:1", "--dry-run"], "--dry-run measures one process, and srun trains with several: use one of the two"),
        ({}, ["--nproc=0"], "0 is not in the range x>=1"),
        ({}, ["--nproc=2", "--workers=2"], "--nproc trains one run after another, each by several processes; --workers trains"),
        ({}, ["--nproc=2", "--executor=ray"], "--nproc trains one run after another, each by several processes; --executor trains"),
        ({}, ["--nproc=2", "--dry-run"], "--dry-run measures one process, and --nproc trains with several: use one of the two"),
        ({}, ["--nproc=2", "train.shards=2"], "train.shards=2 promises the same bits on any number of cores, and several processes"),
        ({}, ["--nodes=2"], "several machines need all of --nodes, --node and --address; missing: --node and --address"),
        ({}, ["--nodes=2", "--node=2", "--address=h:1"], "--node must be from 0 to 1 with --nodes=2, but is 2"),
        ({}, ["--nodes=2", "--node=0", "--address=192.0.2.1:29500"], "--address 192.0.2.1:29500: rank 0 cannot listen there"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_one_sentence(variables, options, sentence, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = call("run", *RECIPE, "--out=out", *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err


# -------------------------------------------------------------------------------------------- two machines, and a cable


@contextmanager
def two_networks():
    """Two network namespaces with a cable between them, 10.97.0.1 and 10.97.0.2: what to say before a command of each,
    and a function that cuts the cable."""

    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    names = [f"tfm{os.getpid()}-{i}" for i in (1, 2)]
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "tfm1", "netns", names[0], "type", "veth", "peer", "tfm2", "netns", names[1])
        for i, name in enumerate(names, 1):
            ip("-n", name, "addr", "add", f"10.97.0.{i}/24", "dev", f"tfm{i}")
            for device in ("lo", f"tfm{i}"):
                ip("-n", name, "link", "set", device, "up")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespaces here: {error}")
    try:
        yield (
            [["ip", "netns", "exec", name] for name in names],
            lambda: ip("-n", names[1], "link", "set", "tfm2", "down"),
        )
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def on_two(machines, *recipe):
    options = ("--nodes=2", "--address=10.97.0.1:29500")
    return [
        started(*recipe, *options, f"--node={node}", f"--out={folder}", before=before)
        for node, (before, folder) in enumerate(zip(machines, ("out", "elsewhere")))
    ]


def test_two_networks_train_a_run_and_a_machine_that_is_gone_without_a_word_is_named(tmp_path):
    with two_networks() as (machines, cut):
        for status, err in ended(*on_two(machines, *CELL)):
            assert status == 0, err
        assert (tmp_path / "out/default/seed-1/results.json").is_file()
        shutil.rmtree(tmp_path / "out")

        zero, one = on_two(machines, *LONG)
        wait_for_steps(zero, tmp_path / "out")
        cut()
        (status, err), (other_status, other_err) = ended(zero, one, seconds=10)
        assert (status, other_status) == (2, 2)
        assert re.search(r"rank 1 \(process \d+ on .*\), of 2, is lost: it has ended, or cannot be reached", err)
        assert "default/seed-1 is saved at step" in err
        assert "Error: rank 0 (10.97.0.1:29500) is lost: it has ended, or cannot be reached" in other_err
