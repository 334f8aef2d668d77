"""What the executor `ray` does on a node, without Ray: the process of a run, its variables and its end."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_cells import is_alive

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm_plugins.executor import _ray_cluster, _ray_task

ENVIRONMENT = {"PATH": os.environ["PATH"], "MINE": "1"}


def train(command, folder, num_cpus=1, num_gpus=0, environment=ENVIRONMENT):
    return _ray_task.train(command, environment, str(folder), str(folder), num_cpus, num_gpus)


def test_a_run_gets_its_folder_and_its_variables_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_JOB_ID", "7")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    status, lines, _ = train(["sh", "-c", "pwd; env"], tmp_path, 2.5)
    assert (status, lines[0]) == (0, str(tmp_path))
    assert set(lines) >= {"MINE=1", "OMP_NUM_THREADS=2"} and not [
        line for line in lines if line.startswith(("RAY", "CU"))
    ]
    assert "CUDA_VISIBLE_DEVICES=3" in train(["env"], tmp_path, num_gpus=1)[1]
    mine = {**ENVIRONMENT, "OMP_NUM_THREADS": "8"}
    assert "OMP_NUM_THREADS=8" in train(["env"], tmp_path, environment=mine)[1]


def test_how_it_ends_is_told_with_its_last_lines(tmp_path):
    assert train(["sh", "-c", "seq 20; exit 3"], tmp_path)[:2] == (3, [str(i) for i in range(9, 21)])
    assert train(["sh", "-c", "kill -9 $$"], tmp_path)[0] == -signal.SIGKILL
    status, lines, _ = train(["/no/python"], tmp_path)
    assert (status, lines) == (1, ["/no/python cannot be started on this node: No such file or directory"])
    for folder, sweep in ((tmp_path / "gone", tmp_path), (tmp_path, tmp_path / "gone")):
        with pytest.raises(NotADirectoryError, match="/gone is not there on "):
            _ray_task.train(["true"], ENVIRONMENT, str(folder), str(sweep), 1, 0)


def test_a_request_to_stop_is_passed_on_and_waited_for(tmp_path):
    """`ray.cancel` interrupts the main thread, in which a task runs; here with SIGINT ignored, as under `nohup … &`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        timer = threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        line = "trap 'sleep 0.5; echo saved; exit 130' TERM; while :; do sleep 0.1; done"
        assert train(["sh", "-c", line], tmp_path)[:2] == (130, ["saved"])
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_with_the_worker_the_run_is_gone(tmp_path):
    program = f"import sys; sys.path.insert(0, {str(Path(_ray_task.__file__).parent)!r})\nimport _ray_task\n"
    program += f"_ray_task.train(['sh', '-c', 'echo $$ > pid; sleep 60'], {ENVIRONMENT!r}, "
    program += f"{str(tmp_path)!r}, {str(tmp_path)!r}, 1, 0)"
    worker = subprocess.Popen([sys.executable, "-c", program])
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
        time.sleep(0.05)
    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)
    worker.kill()
    worker.wait()
    for _ in range(50):
        if not is_alive(pid):
            return
        time.sleep(0.1)
    raise AssertionError("the run goes on")


def node(cpus, gpus=None, alive=True):
    return {"Alive": alive, "Resources": {"CPU": float(cpus)} | ({"GPU": float(gpus)} if gpus else {})}


def test_room_is_counted_node_by_node():
    nodes = [node(7), node(9, 2), node(64, alive=False)]
    assert _ray_cluster.room(nodes, 1, 0) == 16
    assert _ray_cluster.room(nodes, 4, 0) == 3
    assert _ray_cluster.room(nodes, 4, 1) == 2
    assert _ray_cluster.room(nodes, 2, 0.25) == 4
    assert _ray_cluster.room(nodes, 10, 0) == 0
    assert (
        "room for a run with num_cpus: 10 and num_gpus: 0 (the largest have num_cpus: 9 and num_gpus: 2, num_cpus: 7"
        in (_ray_cluster.too_small(nodes, 10, 0))
    )


def test_without_the_package_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(_ray_cluster, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'the executor `ray` needs the package ray.*pip install "ray>=2\.50"'):
        list(create_registry().build("executor", "ray").run([], None))
