"""Sweeps whose runs are trained in folders that nobody shares, and kept in a store."""

import json
import shutil
import signal

import pytest
from stored_sweeps import RECIPE, VARIANTS, listener, run, start

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.sweep.store import Store
from paddle_tfm.sweep.stored_run import StoredRun
from paddle_tfm.sweep.sweep import Sweep
from paddle_tfm.testing.same_runs import differences

pytest.importorskip("fsspec")

pytestmark = pytest.mark.reliability
KILL = "os.kill(os.getpid(), 9)"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The sweep of both variants, trained in one go and without a store."""
    folder = tmp_path_factory.mktemp("whole")
    status, err = run([*RECIPE, VARIANTS, "--workers=1", "--out=runs"], folder)
    assert status == 0, err
    return folder / "runs"


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/disk/store"


@pytest.fixture(autouse=True)
def _disk(tmp_path):
    (tmp_path / "disk").mkdir(exist_ok=True)


def same(whole, runs, *names):
    for name in names:
        assert differences(whole / name, runs / name) == []


def test_a_cell_that_is_killed_is_resumed_elsewhere_to_the_bit(tmp_path, any_url, whole):
    cell = [*RECIPE, VARIANTS, "--out=runs", f"--store={any_url}", "--cell=post/seed-1"]
    status, _ = run([*cell, listener(tmp_path, any_url, KILL)], tmp_path / "one")
    assert status == -signal.SIGKILL
    status, err = run([*cell, "--resume"], tmp_path / "other")
    assert status == 0 and f"claimed in {any_url}" in err and "process" in err, err
    same(whole, tmp_path / "other/runs", "post/seed-1")
    rows = (tmp_path / "other/runs/post/seed-1/about.json").read_text()
    assert len(json.loads(rows)["trainings"]) == 2  # it was no new training
    assert not list((tmp_path / "other").rglob("*.partial")) and not list((tmp_path / "other").rglob("claim.json"))
    # From where it was killed it goes on too, in the store's newest state.
    status, err = run([*cell, "--resume"], tmp_path / "one")
    assert status == 0 and "post/seed-1 is finished already" in err
    same(whole, tmp_path / "one/runs", "post/seed-1")


def test_commands_in_folders_of_their_own_make_the_sweep_of_one_folder(tmp_path, any_url, whole):
    template = f"cd $(mktemp -d -p {tmp_path}/disk) && {{cell}}"
    executor = f'--executor={{name: command, template: "{template}", at_once: 2}}'
    arguments = [*RECIPE, VARIANTS, "--out=runs", f"--store={any_url}", executor]
    status, err = run(arguments, tmp_path / "driver")
    assert status == 0, err
    assert all(f"{variant}/seed-1  step      {step}" in err for variant in ("pre", "post") for step in (2, 4, 6, 8))
    same(whole, tmp_path / "driver/runs", "pre/seed-1", "post/seed-1")
    status, err = run(arguments, tmp_path / "second driver")
    assert status == 2 and f"{any_url} holds runs of this recipe already; add --resume" in err
    status, err = run([*arguments, "--resume"], tmp_path / "second driver")
    assert status == 0 and "post/seed-1 is finished already" in err
    assert (tmp_path / "second driver/runs/comparison.json").exists()


def test_workers_of_one_machine_keep_their_runs_too(tmp_path, url, whole):
    status, err = run([*RECIPE, VARIANTS, "--workers=2", "--out=runs", f"--store={url}"], tmp_path / "one")
    assert status == 0, err
    same(whole, tmp_path / "one/runs", "pre/seed-1", "post/seed-1")
    assert all(StoredRun(Store(url), f"{variant}/seed-1").look().is_finished for variant in ("pre", "post"))


def test_in_one_process_a_store_in_memory_does(tmp_path, whole):
    def sweep(folder, **options):
        return Sweep(load_recipe("base", [*RECIPE[2:], VARIANTS]), create_registry(), folder, **options)

    store = Store(f"memory://{tmp_path}")
    sweep(tmp_path / "one", store=store).run()
    folders = sweep(tmp_path / "other", store=store, resume=True).run()
    same(tmp_path / "one", tmp_path / "other", "pre/seed-1", "post/seed-1")
    assert len(folders) == 2


def test_a_store_that_is_gone_costs_no_step_and_gets_the_run_later(tmp_path, url, whole):
    gone = f"shutil.move({str(tmp_path / 'disk')!r}, {str(tmp_path / 'away')!r})"
    arguments = [*RECIPE, VARIANTS, "--workers=1", "--out=runs", f"--store={url}"]
    status, err = run([*arguments, listener(tmp_path, url, gone + " if run.name[:3] == 'pre' else None")], tmp_path)
    # The store of the second run is gone before it begins, and so nothing of it is trained.
    assert status == 2, err
    assert f"pre/seed-1 was not copied: {url}: there is no such folder or bucket, and it is not made; the next" in err
    assert "pre/seed-1 is whole in runs/pre/seed-1, but was not copied: " in err and "--resume copies it" in err
    same(whole, tmp_path / "runs", "pre/seed-1")
    assert not (tmp_path / "runs/post").exists()
    shutil.move(tmp_path / "away", tmp_path / "disk")
    status, err = run([*arguments, "--resume"], tmp_path)
    assert status == 0, err
    assert all(StoredRun(Store(url), f"{variant}/seed-1").look().is_finished for variant in ("pre", "post"))
    same(whole, tmp_path / "runs", "pre/seed-1", "post/seed-1")


def test_a_run_that_cannot_be_copied_is_said_not_to_be(tmp_path, url, whole):
    runs = shutil.copytree(whole, tmp_path / "one/runs")
    (runs / "pre/seed-1/checkpoints/last/state.json").write_text("{")
    arguments = [*RECIPE, VARIANTS, "--out=runs", f"--store={url}", "--workers=1", "--resume"]
    status, err = run(arguments, tmp_path / "one")
    assert status == 1 and "checkpoints/last/state.json: damaged" in err and "upload" not in err, err
    assert f"1 of 2 runs are trained, but not in {url}: pre/seed-1" in err


def test_a_store_that_is_gone_at_the_end_is_said_with_status_1(tmp_path, url):
    gone = f"shutil.move({str(tmp_path / 'disk')!r}, {str(tmp_path / 'away')!r})"
    arguments = [*RECIPE, "--out=runs", f"--store={url}"]
    status, err = run([*arguments, listener(tmp_path, url, gone)], tmp_path)
    assert status == 1, err
    assert f"1 of 1 runs are trained, but not in {url}: default/seed-1. Copy them with: paddle-tfm run base" in err


def test_nothing_is_trained_where_the_store_is_none(tmp_path):
    for store, sentence in (("s5://x/y", "Protocol not known: s5"), (f"file://{tmp_path}/no/x", "is not made")):
        status, err = run([*RECIPE, "--out=runs", f"--store={store}"], tmp_path)
        assert status == 2 and "Error: " in err and sentence in err
    assert not (tmp_path / "runs").exists()


def test_a_run_that_is_stopped_is_copied_as_it_stopped_and_one_at_a_time_trains_it(tmp_path, any_url, whole):
    cell = [*RECIPE, VARIANTS, "--out=runs", f"--store={any_url}", "--cell=pre/seed-1", "--resume"]
    waits = f"while not Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.1)"
    first = start([*cell, listener(tmp_path, any_url, waits)], tmp_path / "one")
    stored = StoredRun(Store(any_url), "pre/seed-1")
    while (state := stored.look()) is None or state.step < 4:
        assert first.poll() is None
    status, err = run(cell, tmp_path / "other")
    assert status == 2 and "pre/seed-1 is being trained by process " in err, err
    assert not (tmp_path / "other/runs/pre").exists()
    first.send_signal(signal.SIGTERM)
    (tmp_path / "go").touch()
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130 and "pre/seed-1 is saved" in err
    assert stored.look().step == 5
    status, err = run(cell, tmp_path / "other")
    assert status == 0 and "claimed in" not in err
    same(whole, tmp_path / "other/runs", "pre/seed-1")


def test_a_run_that_was_taken_over_stops_with_its_checkpoint(tmp_path, any_url):
    other = '{"host": "node7", "pid": 12, "since": "then", "token": "theirs", "beat": 1}'
    takes = (
        f"[(Store({any_url!r}).write(run.name + '/claim.json', {other.encode()!r}), time.sleep(0.3)) for _ in range(8)]"
    )
    arguments = [*RECIPE, "--out=runs", f"--store={any_url}"]
    status, err = run([*arguments, listener(tmp_path, any_url, takes)], tmp_path)
    assert status == 2, err
    assert "default/seed-1 is being trained by process 12 on node7, since then; wait for its end, or stop it" in err
    assert json.loads((tmp_path / "runs/default/seed-1/checkpoints/last/state.json").read_text())["step"] == 5
    assert json.loads(Store(any_url).read("default/seed-1/claim.json"))["token"] == "theirs"


def test_another_run_in_the_store_is_not_mixed_with_the_one_here(tmp_path, url):
    arguments = [*RECIPE, "--out=runs"]
    assert run([*arguments, f"--store={url}"], tmp_path / "one")[0] == 0
    assert run([*arguments, "model.d_ff=24", f"--store={url}2"], tmp_path / "other")[0] == 0
    (tmp_path / "other/runs/default/seed-1/results.json").unlink()
    shutil.rmtree(tmp_path / "disk/store2")
    shutil.copytree(tmp_path / "disk/store", tmp_path / "disk/store2")
    status, err = run([*arguments, "model.d_ff=24", f"--store={url}2", "--resume"], tmp_path / "other")
    assert status == 2 and "hold two different runs; remove the one that is not to be continued" in err
