"""Whenever power is lost during a save, a training resumes from the last checkpoint or from the one before it."""

import json
import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from crash_states import Recording, lay

from paddle_tfm.data.codec import Codec
from paddle_tfm.files import write_whole
from paddle_tfm.runs import checkpoint, manifest
from paddle_tfm.runs.identity import read_identity
from paddle_tfm.runs.logs import is_before, read_rows
from paddle_tfm.train.run import write_start

AVERAGED = ("train.average=2", "train.ema=0.9", "evaluate.best=loss")
STEP, EVERY = 8, 4
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # hundreds of folders are laid and removed


@pytest.fixture
def recorded(make_trainer):
    """A run of which the evaluation of step 8 was recorded, with all that it saves; and its folder then."""
    trainer = make_trainer(*AVERAGED)
    evaluate, recording = trainer._evaluate, Recording(trainer.run.folder)

    def evaluated():
        with recording if trainer.run.step == STEP else nullcontext():
            evaluate()

    trainer._evaluate = evaluated
    trainer.train()
    return trainer, recording


def resumes(state, folder, whole):
    """The checkpoint from which a training resumes in this state; its log is the one of the whole run till then."""
    lay(state, folder)
    point = manifest.resume_point(folder / "checkpoints")
    stored = manifest.read_state(point)
    assert manifest.damage(point) is None
    assert stored.step in (STEP - EVERY, STEP)
    rows = [row for row in read_rows(folder / "metrics.jsonl") if is_before(row, stored.step, stored.evaluated)]
    assert rows == [row for row in whole if row["step"] <= stored.step]
    return point, stored.step


@pytest.mark.reliability
def test_from_every_crash_state_of_a_save_a_training_resumes(recorded, make_trainer, tmp_path):
    whole, recording = recorded
    assert recording.explained() == recording.there
    log, kinds, count = read_rows(whole.run.folder / "metrics.jsonl"), {}, 0
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        folder = Path(place) / "state"
        for state in recording.states():
            kinds.setdefault(resumes(state, folder, log), state)
            shutil.rmtree(folder)
            count += 1
    assert count > 300
    assert {(point.name, step) for point, step in kinds} == {("last", 4), ("last", 8), ("last.old", 4)}
    state = kinds[(folder / "checkpoints" / "last.old", 4)]  # and it continues to the same bits
    lay(state, tmp_path / "parts")
    ends_as(whole, make_trainer(*AVERAGED, folder="parts"))


def ends_as(whole, trainer):
    trainer.train(resume=True)
    for name in ("metrics.jsonl", "predictions.tsv"):
        assert (trainer.run.folder / name).read_bytes() == (whole.run.folder / name).read_bytes()
    for which, part in (("last", "model"), ("last", "optimizer"), ("last", "ema"), ("best", "model")):
        arrays = [checkpoint.load_arrays(each.run.folder / "checkpoints" / which, part) for each in (whole, trainer)]
        assert arrays[0].keys() == arrays[1].keys()
        for name, array in arrays[0].items():
            np.testing.assert_array_equal(array, arrays[1][name], err_msg=f"{which} {part} {name}")


def test_a_run_that_lost_power_at_its_start_is_whole_or_not_begun(make_run, tmp_path):
    run = make_run(folder="runs/one/run")
    (tmp_path / "runs").mkdir()
    with Recording(tmp_path / "runs") as recording:
        write_start(run)
    begun = 0
    for number, state in enumerate(recording.states()):
        folder = lay(state, tmp_path / str(number)) / "one" / "run"
        if (folder / "identity.json").exists():
            begun += 1
            assert read_identity(folder) == json.loads(json.dumps(run.identity()))
            assert Codec.load(run.plan, folder / "codec").source_vocabulary.pieces == run.codec.source_vocabulary.pieces
            assert (folder / "recipe.yaml").read_bytes() == (run.folder / "recipe.yaml").read_bytes()
        shutil.rmtree(tmp_path / str(number))
    assert 0 < begun < number


@pytest.mark.parametrize("waits", [True, False], ids=["as it is", "without waiting"])
def test_a_file_is_whole_in_every_state_if_it_is_waited_for(waits, tmp_path, monkeypatch):
    """Renaming alone, which many programs take for safe, may leave an empty file: the states know it."""
    path = tmp_path / "here" / "x.json"
    path.parent.mkdir()
    path.write_bytes(b"old old")
    if not waits:
        monkeypatch.setattr("paddle_tfm.files.sync", lambda path: None)
    with Recording(path.parent) as recording:
        write_whole(path, b"new new new")
    contents = {state["x.json"] for state in recording.states()}
    assert (contents == {b"old old", b"new new new"}) == waits
    assert contents >= {b"old old", b"new new new"}
