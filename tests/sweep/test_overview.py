"""How far runs are, by folders that are written by hand."""

import json
import os
import platform
import shutil
import subprocess
import sys

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.runs.sweep_files import Command, write_command
from paddle_tfm.sweep.claim import FILE, claimed
from paddle_tfm.sweep.overview import FolderReader, Overview, SweepRuns
from paddle_tfm.sweep.standing import Standing

RECIPE = "train: {steps: 10}\nevaluate: {best: bleu}\n"


def begin(folder, steps=4, steps_of=RECIPE):
    """A run of 4 steps so far, each of 50 tokens in half a second, evaluated after 2."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text(steps_of)
    (folder / "identity.json").write_text("{}")
    (folder / "about.json").write_text(json.dumps({"units": {"bleu": "points"}}))
    with (folder / "metrics.jsonl").open("w") as log, (folder / "timings.jsonl").open("w") as times:
        for step in range(1, steps + 1):
            log.write(json.dumps({"step": step, "loss": 5 - step, "tokens": 50}) + "\n")
            times.write(json.dumps({"step": step, "seconds": 0.5}) + "\n")
            if step == 2:
                log.write(json.dumps({"step": 2, "evaluation": {"loss": 3.5, "bleu": 12.5}}) + "\n")
    return folder


def finish(folder, diverged=None, bleu=30.0):
    begin(folder)
    results = {"variant": folder.parent.name, "diverged": diverged, "steps": 10, "wall_seconds": 20.0}
    (folder / "results.json").write_text(json.dumps({**results, "test": {"bleu": bleu}, "units": {"bleu": "points"}}))


def claim_of(folder, host, pid):
    (folder / FILE).write_text(json.dumps({"host": host, "pid": pid, "since": "2026-01-02T03:04:05+00:00"}))


def test_the_state_of_a_run_goes_by_its_files(tmp_path):
    names = [f"{name}/seed-1" for name in ("done", "nan", "here", "ended", "dead", "far", "quiet", "odd", "later")]
    write_command(tmp_path, Command(command=["paddle-tfm", "run", "mine.yaml"], runs=names))
    finish(tmp_path / names[0])
    finish(tmp_path / names[1], diverged="the loss was no number at step 7 (nan)")
    for name in names[2:7]:
        begin(tmp_path / name)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    claim_of(tmp_path / names[4], platform.node(), ended.pid)
    claim_of(tmp_path / names[5], "another.machine", 7)
    claim_of(tmp_path / names[6], "another.machine", 7)
    for file in (tmp_path / names[6]).iterdir():
        os.utime(file, (1e9, 1e9))
    (tmp_path / names[7] / "recipe.yaml").mkdir(parents=True)
    with claimed(tmp_path / names[2]):
        overview = FolderReader(tmp_path).look()
    runs = {run.name.partition("/")[0]: run for run in overview.runs}
    assert [run.name for run in overview.runs] == names
    states = ["done", "diverged", "running", "stopped", "killed", "running", "silent", "unreadable", "waiting"]
    assert [run.state for run in overview.runs] == states
    here = runs["here"]
    assert (here.step, here.steps, here.loss, here.valid, here.best) == (4, 10, 1, {"loss": 3.5, "bleu": 12.5}, "bleu")
    assert (here.tokens_per_second, here.seconds_left, here.units) == (100, 3, {"bleu": "points"})
    assert (runs["done"].scores, runs["done"].seconds) == ({"bleu": 30}, 20)
    assert (
        runs["dead"].note
        == f"process {ended.pid} on {platform.node()}, which trained it since 2026-01-02 03:04 UTC, is gone"
    )
    assert "process 7 on another.machine" in runs["quiet"].note and "hours" in runs["quiet"].note
    assert "recipe.yaml: cannot be read" in runs["odd"].note
    assert not overview.is_finished
    assert overview.sweeps[0].again() == f"paddle-tfm run mine.yaml --out {tmp_path} --resume"


def test_looking_changes_nothing_and_keeps_nobody_out(tmp_path):
    folder = begin(tmp_path / "pre/seed-1")
    claim_of(folder, platform.node(), 1)
    before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    FolderReader(tmp_path).look()
    assert {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()} == before
    with claimed(folder):
        pass


def test_time_goes_on(tmp_path):
    """Begun, trained, resumed from an earlier step, finished, and removed."""
    write_command(tmp_path, Command(runs=["pre/seed-1"]))
    folder, reader = tmp_path / "pre/seed-1", FolderReader(tmp_path)

    def look():
        (run,) = reader.look().runs
        return run.state, run.step, run.valid.get("bleu")

    assert look() == ("waiting", 0, None)
    with claimed(folder):
        assert look() == ("running", 0, None)  # it learns its vocabulary
        begin(folder, steps=1)
        assert look() == ("running", 1, None)
        with (folder / "metrics.jsonl").open("a") as log:
            log.write('{"step": 2, "loss": 1.5, "tokens": 50}\n{"step": 3, "lo')
        assert look() == ("running", 2, None)
    assert look() == ("stopped", 2, None)
    (folder / "metrics.jsonl").rename(folder / "before")
    begin(folder, steps=2)
    with claimed(folder):
        assert look() == ("running", 2, 12.5)
        finish(folder)
        assert look() == ("done", 10, None)
    shutil.rmtree(folder)
    assert look() == ("waiting", 0, None)
    shutil.rmtree(tmp_path)
    with pytest.raises(UserError, match="is gone"):
        look()


def test_a_sweep_may_get_more_runs_or_fewer(tmp_path):
    reader = FolderReader(tmp_path)
    for names in (["pre/seed-1"], ["pre/seed-1", "pre/seed-2"], ["pre/seed-2"]):
        write_command(tmp_path, Command(runs=names))
        assert [run.name for run in reader.look().runs] == names


def test_what_a_folder_holds(tmp_path):
    for sweep in ("one", "deep/two"):
        write_command(
            tmp_path / begin(tmp_path / sweep / "pre/seed-1").parents[1],
            Command(runs=["pre/seed-1", "post/seed-1", "post/seed-2"]),
        )
    begin(tmp_path / "alone/pre/seed-3")

    def names(folder):
        return [run.name for run in FolderReader(folder).look().runs]

    below = ["pre/seed-1", "post/seed-1", "post/seed-2"]
    assert names(tmp_path / "one") == below
    assert names(tmp_path) == [
        "pre/seed-3",
        *(f"deep/two/{name}" for name in below),
        *(f"one/{name}" for name in below),
    ]
    assert names(tmp_path / "one/post") == below[1:]  # nothing of it has begun
    assert names(tmp_path / "one/post/seed-2") == below[2:]
    assert names(tmp_path / "alone/pre/seed-3") == ["pre/seed-3"]
    (tmp_path / "empty").mkdir()
    assert names(tmp_path / "empty") == []
    with pytest.raises(UserError, match="nowhere: there is no such folder"):
        names(tmp_path / "nowhere")


def test_a_seed_is_complete_when_every_variant_has_results(tmp_path):
    states = {"a/seed-1": "done", "b/seed-1": "diverged", "a/seed-2": "done", "b/seed-2": "running", "b/seed-3": "done"}
    sweep = SweepRuns(tmp_path, [Standing(name, tmp_path / name, state) for name, state in states.items()])
    assert (sweep.complete_seeds(), sweep.seeds()) == (["seed-1", "seed-3"], ["seed-1", "seed-2", "seed-3"])


def standing(tmp_path, name, state, **facts):
    return Standing(name, tmp_path / name, state, **facts)


# With two: 6, 20 and 50, beside 60; with three: 6 and 50, beside 60 and 20.
@pytest.mark.parametrize("at_once, expected", [(1, 136), (2, 76), (3, 60), (4, 60)])
def test_the_time_left_is_that_of_whoever_is_free_first(tmp_path, at_once, expected):
    """One runs for 6 s more, of a variant whose runs take 60; of the others one takes 20, or half of 100 is done."""
    runs = [
        standing(tmp_path, "slow/seed-1", "running", step=9, steps=10, seconds_left=6.0),
        standing(tmp_path, "slow/seed-2", "waiting"),
        standing(tmp_path, "quick/seed-1", "done", seconds=20.0),
        standing(tmp_path, "quick/seed-2", "waiting"),
        standing(tmp_path, "long/seed-1", "done", seconds=100.0),
        standing(tmp_path, "long/seed-2", "stopped", step=5, steps=10),
    ]
    assert Overview(tmp_path, [SweepRuns(tmp_path, runs)], at_once).seconds_left() == pytest.approx(expected)


def test_there_is_no_time_left_where_nothing_is_trained_or_known(tmp_path):
    waiting, done = standing(tmp_path, "a/seed-1", "waiting"), standing(tmp_path, "a/seed-2", "done", seconds=3.0)
    starting = standing(tmp_path, "b/seed-1", "running")
    for runs in ([waiting], [waiting, done], [waiting, starting]):
        assert Overview(tmp_path, [SweepRuns(tmp_path, runs)], 1).seconds_left() is None
