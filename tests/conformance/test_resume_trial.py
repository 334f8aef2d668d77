"""`check RECIPE --resume`: what two runs differ in is named, and a component that hides a number between steps is caught."""

import json
import re
import shutil

import numpy as np
import pytest
from recipe_text import TINY_MODEL
from safetensors.numpy import save_file

from paddle_tfm.cli import main
from paddle_tfm.testing.same_runs import differences

TINY = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 4, train: 60, valid: 6, test: 6}",
    *TINY_MODEL,
    "model.max_length=8", "train.max_tokens=64", "train.steps=6", "evaluate.every=2",
]  # fmt: skip
FORGETFUL = """
import paddle
from paddle_tfm.hookspecs import hookimpl
from paddle_tfm_plugins.norm.layer import LayerNorm


class Forgetful(LayerNorm):
    \"\"\"A norm whose scale grows with the number of calls, which it keeps where no checkpoint looks.\"\"\"

    calls = 0

    def forward(self, x, valid=None, positions=None):
        self.calls += self.training
        return super().forward(x, valid, positions) * (1 + 0.01 * self.calls)


@hookimpl
def register_norms():
    return {"forgetful": Forgetful}
"""


@pytest.fixture
def run(tmp_path):
    """The files of a small run, written by hand."""
    folder = tmp_path / "one"
    (folder / "checkpoints" / "last").mkdir(parents=True)
    arrays = {"a.weight": np.zeros((2, 3), np.float32), "b": np.float32([1.0, np.nan])}
    save_file(arrays, folder / "checkpoints/last/model.safetensors")
    rows = [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "predictions.tsv").write_text("a\nb\n")
    (folder / "results.json").write_text(json.dumps({"steps": 2, "seconds": 1.0, "valid": {"loss": 0.25}}))
    return folder


def changed(run, tmp_path, name, make):
    shutil.copytree(run, tmp_path / "other")
    make(tmp_path / "other" / name)
    return differences(run, tmp_path / "other")


def rewrite(old, new):
    return lambda path: path.write_text(path.read_text().replace(old, new))


def one_number(path):
    other = np.zeros((2, 3), np.float32)
    other[1, 2] = 1.5
    save_file({"a.weight": other, "b": np.float32([1.0, np.nan])}, path)


CASES = {
    "a tensor": (
        "checkpoints/last/model.safetensors",
        one_number,
        "checkpoints/last/model.safetensors: a.weight differs: 1 of 6 numbers, the first at [1, 2]: 0.0 and 1.5",
    ),
    "a sign of zero": (
        "checkpoints/last/model.safetensors",
        lambda path: save_file({"a.weight": -np.zeros((2, 3), np.float32), "b": np.float32([1.0, np.nan])}, path),
        "checkpoints/last/model.safetensors: a.weight differs in its bits only, by the sign of a zero or the kind of a NaN",
    ),
    "a name": (
        "checkpoints/last/model.safetensors",
        lambda path: save_file({"a.weight": np.zeros((2, 3), np.float32)}, path),
        "checkpoints/last/model.safetensors: only one of the two has b",
    ),
    "a shape": (
        "checkpoints/last/model.safetensors",
        lambda path: save_file({"a.weight": np.zeros(6, np.float32), "b": np.float32([1.0, np.nan])}, path),
        "checkpoints/last/model.safetensors: a.weight is float32 [2, 3] and float32 [6]",
    ),
    "a metric": ("metrics.jsonl", rewrite("0.25", "0.26"), "metrics.jsonl: loss of step 2 is 0.25 and 0.26"),
    "a prediction": ("predictions.tsv", rewrite("b", "c"), "predictions.tsv: line 2 is 'b' and 'c'"),
    "a score": (
        "results.json",
        rewrite("0.25", "0.26"),
        "results.json: valid is {'loss': 0.25} and {'loss': 0.26}",
    ),
}


@pytest.mark.parametrize(("name", "make", "sentence"), CASES.values(), ids=list(CASES))
def test_what_differs_is_named(run, tmp_path, name, make, sentence):
    assert changed(run, tmp_path, name, make) == [sentence]


def test_times_are_no_difference(run, tmp_path):
    assert changed(run, tmp_path, "results.json", rewrite("1.0", "2.0")) == []


def check_resume(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(["check", "base", "--resume", *TINY, *arguments])
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


@pytest.mark.reliability
def test_a_component_that_hides_a_number_is_caught(tmp_path, capsys):
    (tmp_path / "forgetful.py").write_text(FORGETFUL)
    plugin = f"--plugin={tmp_path / 'forgetful.py'}"
    code, out, err = check_resume(capsys, "model.norm=forgetful", plugin)
    assert code == 1, err
    assert "default/seed-1, killed after step 3 and resumed, is another run" in out
    assert "checkpoints/last/model.safetensors: " in out and "metrics.jsonl: loss of step 3 is " in out


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["model.norm=batch", "train.ema=0.9", "train.average=2", "train.accumulate=2"])
def test_what_ships_resumes_exactly(capsys, setting):
    code, out, err = check_resume(capsys, setting)
    assert (code, out) == (
        0,
        "default/seed-1, killed after step 3 and resumed: parameters, optimizer state, metrics, predictions and "
        "results are the same to the bit.\n",
    ), err


@pytest.mark.reliability
def test_a_run_that_diverges_before_the_kill_is_said_to(capsys):
    rate = "train.schedule={name: constant, learning_rate: 1.0e30}"
    code, _, err = check_resume(capsys, rate, "train.clip_norm=null")
    assert code == 2 and "killed after step 3\n" not in err
    assert re.search(
        r"Error: default/seed-1 ends at step 1 \(the loss was no number at step 2 \(nan\); a smaller learning rate may "
        r"help\), before it is to be killed, after step 3",
        err,
    )


def test_a_training_that_is_too_short_and_a_run_that_is_none_are_refused(capsys):
    code, _, err = check_resume(capsys, "train.steps=1")
    assert code == 2 and "raise train.steps above 2" in err
    code, _, err = check_resume(capsys, "--cell", "other/seed-1")
    assert code == 2 and "unknown run 'other/seed-1'" in err
