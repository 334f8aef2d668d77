"""The executor `ray` on a cluster of two nodes on this machine: each with one CPU, and cells that train nothing."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
from fake_cells import FakeCell, FakeSupervisor, is_alive

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm_plugins.executor import ray as executor_ray

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.cluster
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def nodes(cluster):
    """The cluster, with its second node; one that a test killed is replaced."""
    if not cluster.worker_nodes:
        cluster.add_node(**{key: value for key, value in NODE.items() if key != "include_dashboard"})
    cluster.wait_for_nodes()
    return cluster


@pytest.fixture
def supervisor():
    return FakeSupervisor()


def executor(cluster, **options):
    return create_registry().build("executor", {"name": "ray", "address": cluster.address, **options})


def begun(folder, name):
    """The process and the parent of a cell that writes both, once it has."""
    file, end = folder / name / "begun", time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end
        time.sleep(0.05)
    return [int(word) for word in file.read_text().split()]


def ends(pid, seconds=20):
    end = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.1)
    return not is_alive(pid)


ONCE = "echo x >> starts; if [ -e begun ]; then finish; else echo $$ $PPID > begun; sleep 60; fi"  # its first try hangs


def cells_of(folder, *lines):
    """Cells whose lines run in their own folders."""
    return [FakeCell(folder, str(i), f"cd {folder}/{i}; {line}") for i, line in enumerate(lines)]


class Acts(FakeSupervisor):
    """Does something once, when a cell has begun."""

    def __init__(self, folder, name, act):
        super().__init__()
        self.file, self.act, self.has_acted = folder / name / "begun", act, False

    def follow(self, cell):
        if not self.has_acted and self.file.exists() and self.file.read_text().endswith("\n"):
            self.has_acted = True
            self.act(*[int(word) for word in self.file.read_text().split()])


def test_every_cell_once_on_both_nodes_at_the_same_time(nodes, tmp_path, supervisor):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        line = f"env > variables; echo + >> {tmp_path}/log; sleep 1; echo - >> {tmp_path}/log; finish"
        cells = cells_of(tmp_path, *[line] * 6)
        outcomes = list(executor(nodes).run(cells, supervisor))
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN  # which Ray takes otherwise
    finally:
        signal.signal(signal.SIGTERM, before)
    assert Counter(outcomes) == Counter((cell, "") for cell in cells)
    running, most, signs = 0, 0, (tmp_path / "log").read_text().split()
    for sign in signs:
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert (running, most, len(signs), supervisor.sentences) == (0, 2, 12, [])
    variables = (tmp_path / "0/variables").read_text().splitlines()
    assert not [line for line in variables if line.startswith(("RAY_JOB_ID", "RAY_RAYLET_PID"))]


def test_a_failure_costs_one_cell_and_a_death_a_few_tries(nodes, tmp_path, supervisor):
    lines = ["finish", "echo 'Error: no such data' >&2; exit 2", "echo x >> starts; kill -9 $$", "finish; exit 3"]
    outcomes = list(executor(nodes, retries=1).run(cells_of(tmp_path, *lines), supervisor))
    failures = {cell.name: failure for cell, failure in outcomes}
    assert failures["0"] == failures["3"] == ""
    assert failures["1"].endswith("its command ended with exit status 2, and wrote last:\n  Error: no such data")
    assert failures["2"].endswith("its command was ended by SIGKILL")
    assert (tmp_path / "2/starts").read_text() == "x\nx\n"
    (sentence,) = supervisor.sentences
    assert sentence.startswith("2: on ") and sentence.endswith("SIGKILL; it is started again (1 of 1)")


def test_a_worker_that_is_killed_takes_its_cell_along_which_is_started_again(nodes, tmp_path):
    supervisor = Acts(tmp_path, "0", lambda pid, parent: os.kill(parent, signal.SIGKILL))
    cells = cells_of(tmp_path, ONCE, "finish")
    assert Counter(executor(nodes).run(cells, supervisor)) == Counter((cell, "") for cell in cells)
    assert ends(begun(tmp_path, "0")[0])
    assert (tmp_path / "0/starts").read_text() == "x\nx\n"
    (sentence,) = supervisor.sentences
    assert sentence.startswith("0: its worker died (") and sentence.endswith("started again (1 of 2)")


def test_a_node_that_is_killed_loses_its_cell_to_the_other(nodes, tmp_path):
    """Both nodes train; the raylet of the second dies, and its worker with it."""
    supervisor, (second,) = FakeSupervisor(), nodes.worker_nodes
    cells, is_killed = cells_of(tmp_path, ONCE, ONCE), []

    def kill(cell):
        if not is_killed and all((tmp_path / name / "begun").exists() for name in "01"):
            is_killed.append(True)
            second.kill_raylet()
            nodes.worker_nodes.clear()
            for name in "01":
                pid, parent = begun(tmp_path, name)
                if second.node_id not in Path(f"/proc/{parent}/cmdline").read_text():
                    os.kill(pid, signal.SIGKILL)  # so that its second try ends, too

    supervisor.follow = kill
    assert Counter(executor(nodes).run(cells, supervisor)) == Counter((cell, "") for cell in cells)
    assert all(ends(begun(tmp_path, name)[0]) for name in "01")
    assert len(supervisor.sentences) == 2


def test_a_driver_that_is_killed_leaves_nothing_and_its_sweep_goes_on(nodes, tmp_path, supervisor):
    program = f"""
        from pathlib import Path
        from fake_cells import FakeSupervisor
        from test_ray import ONCE, cells_of, executor
        class cluster: address = {nodes.address!r}
        list(executor(cluster).run(cells_of(Path({str(tmp_path)!r}), ONCE, "finish", ONCE, ONCE), FakeSupervisor()))
    """
    folder = Path(__file__).parent
    driver = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], cwd=folder)
    pids = [begun(tmp_path, name)[0] for name in "02"]
    driver.kill()
    driver.wait()
    assert all(map(ends, pids))
    for file in tmp_path.glob("*/begun"):
        file.unlink()
    time.sleep(2)
    assert not list(tmp_path.glob("*/begun"))  # what waited in the queue is gone with it
    cells = [FakeCell(tmp_path, name, "finish") for name in "0123"]
    assert [cell.is_finished for cell in cells] == [False, True, False, False]
    left = [cell for cell in cells if not cell.is_finished]
    assert Counter(executor(nodes).run(left, supervisor)) == Counter((cell, "") for cell in left)


LOST = """
    import os, sys
    from pathlib import Path
    from ray.cluster_utils import Cluster
    from test_ray import NODE, ONCE, Acts, begun, cells_of, ends, executor
    cluster, folder = Cluster(initialize_head=True, head_node_args=NODE), Path(sys.argv[1])
    (lost,) = (each.process for each in cluster.head_node.all_processes[sys.argv[2]])
    try:
        supervisor = Acts(folder, "0", lambda pid, parent: lost.kill())
        list(executor(cluster, retries=1).run(cells_of(folder, ONCE, ONCE), supervisor))
    except Exception as error:
        print(type(error).__name__, error, sep=": ")
    if sys.argv[2] == "gcs_server":  # without their raylet, workers are not reached
        print(ends(begun(folder, "0")[0]), (folder / "1/begun").exists())
    cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("process", "said"),
    [
        ("gcs_server", ["CutShort: the head of the cluster is lost: it does not answer", "True False"]),
        ("raylet", ["CutShort: Ray's process on this machine (its raylet) is lost"]),
    ],
)
def test_a_cluster_that_is_lost_ends_the_sweep(process, said, tmp_path):
    """In a process of its own, which Ray ends a minute later. The driver is on the head's machine."""
    command = [sys.executable, "-c", textwrap.dedent(LOST), tmp_path, process]
    done = subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    assert done.stdout.splitlines()[-len(said) :] == said


def test_results_that_are_not_seen_here_end_the_sweep(nodes, tmp_path, supervisor, monkeypatch):
    monkeypatch.setattr(executor_ray, "SEEN_SECONDS", 1)
    with pytest.raises(UserError, match=r"0 was trained on .*, but its results are not in .*must share the folder"):
        list(executor(nodes).run(cells_of(tmp_path, "true"), supervisor))


def test_a_cluster_that_is_not_there_is_said_to_be(supervisor):
    with pytest.raises(UserError, match=r"no connection to Ray at 127\.0\.0\.1:9: "):
        list(create_registry().build("executor", {"name": "ray", "address": "127.0.0.1:9"}).run([], supervisor))


def test_too_much_for_every_node_is_said_and_waited_for(nodes, tmp_path, supervisor):
    supervisor.stopped = lambda: bool(supervisor.sentences)
    assert list(executor(nodes, num_cpus=4).run(cells_of(tmp_path, "finish"), supervisor)) == []
    assert supervisor.sentences[0].startswith("no node of the cluster has room for a run with num_cpus: 4")
