"""Recipes beside each other, and what a run's folder says of its training."""

import pytest

import paddle_tfm
from paddle_tfm.recipe import loading
from paddle_tfm.recipe.differences import ABSENT, differences
from paddle_tfm.runs.forms import read_about
from paddle_tfm.runs.sweep_files import read_command


def resolved(*overrides):
    (run,) = loading.load("base", overrides).runs()
    return run.data


def test_differences_are_what_was_overridden_and_nothing_else():
    changed = ["model.norm={encoder: batch, decoder: layer}", "train.steps=7", "train.schedule.warmup=9", "seeds=[4]"]
    rows = {row.path: (row.one, row.other) for row in differences(resolved(), resolved(*changed))}
    assert rows == {
        "model.norm": ("layer", {"encoder": "batch", "decoder": "layer"}),
        "train.steps": (1000, 7),
        "train.schedule.warmup": (200, 9),
    }
    assert differences(resolved(), resolved()) == []
    assert differences({"a": {"x": 1}}, {"a": {"y": 2}}) == [("a.x", 1, ABSENT), ("a.y", ABSENT, 2)]


@pytest.mark.reliability
def test_a_run_says_where_it_was_trained_and_a_sweep_how(tmp_path):
    settings = ["task.train=50", "task.valid=6", "task.test=7", "train.steps=2", "evaluate.every=1", "model.d_model=8"]
    (folder,) = paddle_tfm.run("copy", [*settings, "model.d_ff=8"], out=tmp_path)
    about = read_about(folder)
    assert about["examples"] == {"train": 50, "valid": 6, "test": 7}
    assert len(about["samples"]) == 3 and all(source == target for source, target in about["samples"])  # copying
    assert about["mean_length"] == {"source": 11.0, "target": 11.0}  # ten numbers and the end
    assert about["longest_source"]["words"] == 10 <= about["longest_source"]["characters"]
    (training,) = about["trainings"]
    assert training["device"] == "cpu" and training["versions"]["paddle_tfm"] == paddle_tfm.__version__
    assert read_command(tmp_path).command == ["paddle-tfm", "run", "copy", *settings, "model.d_ff=8"]
    (folder / "results.json").unlink()
    paddle_tfm.run("copy", [*settings, "model.d_ff=8"], out=tmp_path, resume=True)
    assert len(read_about(folder)["trainings"]) == 2  # that of before is kept


def test_damaged_files_are_no_reason_to_fail(tmp_path):
    assert (read_about(tmp_path), read_command(tmp_path).command) == ({}, [])
    for content in ("[1]", "{", '{"command": 5}'):
        (tmp_path / "about.json").write_text(content)
        (tmp_path / "command.json").write_text(content)
        assert "trainings" not in read_about(tmp_path) and read_command(tmp_path).command == []
