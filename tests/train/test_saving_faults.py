"""A disk that is full, a folder that is gone, files that changed: a sentence, and the last good checkpoint as it was."""

import os
import resource
import shutil
import sys

import pytest

from paddle_tfm import UserError
from paddle_tfm.cli import main
from paddle_tfm.runs import manifest
from paddle_tfm.runs.check import findings
from paddle_tfm.train.trainer import Interrupted

pytestmark = pytest.mark.reliability


@pytest.fixture
def full(monkeypatch):
    """From the call on no file of this process may grow beyond so many bytes: the system refuses, as a full disk or a
    quota does, in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of which half would be written, too
    yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def stopped(make_trainer):
    """A run that was stopped after step 6 of 12: `last` is of step 6, the one before it of step 4."""
    trainer = make_trainer()
    trainer.stop = lambda: trainer.run.step >= 6
    with pytest.raises(Interrupted):
        trainer.train()
    return trainer


@pytest.mark.parametrize("most", [200, 20_000], ids=["in its state", "in its weights"])
def test_a_full_disk_leaves_the_last_checkpoint_and_says_so(stopped, full, most):
    last = stopped.run.folder / "checkpoints" / "last"
    before = {path.name: path.read_bytes() for path in last.iterdir()}
    stopped.run.step = stopped.state.progress.step = 7
    full(most)
    with pytest.raises(
        UserError, match=r"last: the checkpoint of step 7 was not saved: .*[Ff]ile too large.*; the one before"
    ):
        stopped._save("last")
    assert {path.name: path.read_bytes() for path in last.iterdir()} == before
    assert manifest.damage(last) is None
    assert not last.with_name("last.partial").exists()  # it takes no room that is not there


def test_whoever_the_umask_lets_read_a_run_reads_its_weights_too(make_trainer):
    before = os.umask(0o007)
    try:
        trainer = make_trainer("train.steps=2", "train.ema=0.9")
        trainer.train()
    finally:
        os.umask(before)
    files = [path for path in trainer.run.folder.rglob("*") if path.is_file()]
    assert {"ema.safetensors", "optimizer.safetensors", "model.safetensors"} <= {path.name for path in files}
    assert {path.name: path.stat().st_mode & 0o777 for path in files} == {path.name: 0o660 for path in files}


# ------------------------------------------------------------------------------------------------------------- damage


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


FILES = ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_checkpoint_is_named_and_passed_over(stopped, file):
    checkpoints, said = stopped.run.folder / "checkpoints", []
    assert manifest.resume_point(checkpoints, said.append) == checkpoints / "last" and not said
    flip(checkpoints / "last" / file)
    assert manifest.resume_point(checkpoints, said.append) == checkpoints / "last.old"
    (sentence,) = said
    assert f"checkpoints/last/{file}: damaged" in sentence or (file == "manifest.json" and "damaged" in sentence)
    assert sentence.endswith("it is passed over, and the training resumes from step 4")
    flip(checkpoints / "last.old" / "model.safetensors")
    with pytest.raises(
        UserError, match=r"last.old/model.safetensors: damaged.*; remove .*/run to train this run again"
    ):
        manifest.resume_point(checkpoints)


def test_check_says_from_which_checkpoint_a_damaged_run_resumes(stopped, make_trainer, registry):
    flip(stopped.run.folder / "checkpoints" / "last" / "optimizer.safetensors")
    marks, said = {each.subject: each.mark for each in findings(stopped.run.folder, registry)}, []
    sound = dict.fromkeys(("best", "last.old", "metrics.jsonl", "timings.jsonl", "about.json", "code", "data"), "ok")
    assert marks == {**sound, "last": "bad", "resume": "note"}
    make_trainer(report=said.append).train(resume=True)
    assert "optimizer.safetensors: damaged" in said[0] and said[0].endswith("resumes from step 4")
    assert {each.mark for each in findings(stopped.run.folder, registry)} == {"ok"}


def test_check_names_what_is_wrong_and_ends_with_1(stopped, capsys):
    def said(*options):
        with pytest.raises(SystemExit) as left:
            main(["check", str(stopped.run.folder), *options])
        return left.value.code, capsys.readouterr().out

    code, text = said()
    assert code == 0 and "bad" not in text and "it would resume from step 6" in text
    assert "the texts of train, valid, test are those" in text
    flip(stopped.run.folder / "checkpoints" / "best" / "model.safetensors")
    with (stopped.run.folder / "metrics.jsonl").open("a") as log:
        log.write('{"step": 7, "lo\n')
    code, text = said()
    assert code == 1
    assert "best/model.safetensors: damaged: its content is not what was saved" in text
    assert "1 line of 8 cannot be read" in text
    assert "texts" not in said("--without-data")[1]
    identity = stopped.run.folder / "identity.json"
    identity.write_text(identity.read_text().replace('"train": "', '"train": "0'))
    code, text = said()
    assert code == 1
    assert "data changed (the texts of train)" in text


def test_the_weights_that_the_old_checkpoint_averages_stay_as_long_as_it_does(make_trainer):
    trainer = make_trainer("train.average=2", "train.steps=16")
    checkpoints = trainer.run.folder / "checkpoints"
    state = checkpoints / "last" / "state.json"
    trainer.stop = lambda: state.exists() and manifest.read_state(state.parent).step == 12
    with pytest.raises(Interrupted):
        trainer.train()
    states = [manifest.read_state(path) for path in (checkpoints / "last.old", checkpoints / "last")]
    assert [state.snapshots for state in states] == [[4, 8], [8, 12]]
    flip(checkpoints / "last" / "model.safetensors")
    assert manifest.resume_point(checkpoints) == checkpoints / "last.old"
    shutil.rmtree(checkpoints / "step-4")
    with pytest.raises(UserError, match="step-4: this checkpoint is gone"):
        manifest.resume_point(checkpoints)
