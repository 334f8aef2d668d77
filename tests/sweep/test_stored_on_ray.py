"""A sweep on a cluster of Ray with two nodes on this machine, which share no folder: its runs are kept in a store."""

import json
import time
from pathlib import Path

import pytest
from stored_sweeps import RECIPE, VARIANTS, listener, run, start

from paddle_tfm.testing.same_runs import differences

pytest.importorskip("ray")
pytest.importorskip("fsspec")
pytestmark = pytest.mark.cluster
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


@pytest.fixture
def arguments(cluster, any_url, tmp_path):
    """A sweep of two runs, each on a node with a folder of its own, named after the process of the node's raylet."""
    folder = f"{tmp_path}/nodes/$RAY_RAYLET_PID"
    executor = f'--executor={{name: ray, address: "{cluster.address}", folder: "{folder}"}}'
    return [*RECIPE, VARIANTS, "--out=runs", f"--store={any_url}", executor]


def waits(tmp_path, any_url):
    """A plugin for runs that after step 5, once the store has step 4, say which process they are, and where, and wait."""
    line = f"(Path({str(tmp_path)!r}) / run.name[:3]).write_text(f'{{os.getpid()}} {{os.getcwd()}}')"
    line += f"\n        while not Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.1)"
    return listener(tmp_path, any_url, line)


def test_nodes_that_share_no_folder_make_the_sweep_of_one(cluster, arguments, any_url, tmp_path):
    """And the run of a node that is killed in the middle is resumed on the other, to the bit."""
    status, err = run([*RECIPE, VARIANTS, "--workers=1", "--out=runs"], tmp_path / "whole")
    assert status == 0, err
    driver = start([*arguments, waits(tmp_path, any_url)], tmp_path / "driver")
    places = [tmp_path / "pre", tmp_path / "pos"]
    end = time.monotonic() + 120
    while not all(file.exists() and file.read_text() for file in places):
        assert driver.poll() is None and time.monotonic() < end, driver.communicate()[1]
        time.sleep(0.1)
    pids, folders = zip(*(file.read_text().split() for file in places))
    raylets = [int(Path(folder).name) for folder in folders]
    assert len(set(raylets)) == 2  # each run on a node of its own
    (second,) = cluster.worker_nodes
    (killed,) = [pid for pid in raylets if second.node_id in Path(f"/proc/{pid}/cmdline").read_text()]
    second.kill_raylet()
    cluster.worker_nodes.clear()
    while Path(f"/proc/{pids[raylets.index(killed)]}").exists():  # its run ends with it, within seconds
        assert time.monotonic() < end
        time.sleep(0.1)
    (tmp_path / "go").touch()
    _, err = driver.communicate(timeout=300)
    assert driver.returncode == 0 and "Traceback" not in err, err
    lost = ["pre/seed-1", "post/seed-1"][raylets.index(killed)]
    assert f"{lost}: its worker died (" in err and "it is started again (1 of 2)" in err
    for name in ("pre/seed-1", "post/seed-1"):
        assert differences(tmp_path / "whole/runs" / name, tmp_path / "driver/runs" / name) == []
        trainings = json.loads((tmp_path / "driver/runs" / name / "about.json").read_text())["trainings"]
        assert len(trainings) == (2 if name == lost else 1)
    assert not (tmp_path / f"nodes/{killed}/runs/{lost}/results.json").exists()
