"""The benchmark compares like with like: the same losses and outputs on all sides. No test looks at a clock."""

import importlib.util
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import paddle_tfm
from benchmarks import measure, process, sides
from benchmarks.__main__ import HEADINGS, how, main, table
from benchmarks.measure import Row, measure_search, measure_step
from benchmarks.workload import STEPS
from paddle_tfm import runtime
from paddle_tfm.errors import UserError
from paddle_tfm.recipe import yaml_lines

TINY = ["model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=2", "model.decoder_layers=1"]
SMALL = [*TINY, "model.max_length=24", "train.max_tokens=240", "task={name: dates, train: 20}"]


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("PADDLE_TFM_DATA", raising=False)


def library(side, what):
    """The class of a side, in this process."""
    kind = sides.SIDES[side]
    pytest.importorskip(kind.package if side != "joeynmt" else "joeynmt.model", reason="the extra [bench]")
    runtime.load_paddle()
    return getattr(importlib.import_module(f"benchmarks.libraries.{kind.module}"), what)


# ------------------------------------------------------------------------------------------------------------ training

# JoeyNMT's norms add another constant to the variance.
OTHERS = {"torch": 1e-5, "torch-tuned": 1e-5, "torch-bfloat16": 0.02, "joeynmt": 1e-3, "ours-bfloat16": 0.02}


@pytest.mark.parametrize(
    ("side", "tolerance"),
    [
        ("paddle", 1e-5),
        *(pytest.param(side, tolerance, marks=pytest.mark.slow) for side, tolerance in OTHERS.items()),
    ],
)
def test_with_copied_weights_a_side_takes_the_same_steps(tmp_path, side, tolerance):
    """Model, masks, clipping, optimizer and the order of batches are the same: losses agree before and after."""
    written = measure.common_recipe("tiny", [*SMALL, "model.dropout=0.0", "train.clip_norm=0.5"])
    (tmp_path / "recipe.yaml").write_text(yaml_lines.dump(written), "utf-8")
    (tmp_path / "request.json").write_text(json.dumps({"length": None}), "utf-8")
    ours = library("ours", "Training")(tmp_path)
    theirs = library(side, "Training")(tmp_path, side)
    assert not ours.batches[0].source_valid.all() and not ours.batches[0].target_valid.all(), "the masks are not tried"
    before = ours.first_loss()
    assert theirs.first_loss() == pytest.approx(before, abs=tolerance)
    ours.turn("step", 0)
    theirs.turn("step", 0)
    assert before - ours.first_loss() > 1e-3
    assert theirs.first_loss() == pytest.approx(ours.first_loss(), abs=tolerance)


def test_texts_of_one_length_are_cut(tmp_path):
    written = measure.common_recipe("tiny", [*SMALL, "train.max_tokens=40"])
    (tmp_path / "recipe.yaml").write_text(yaml_lines.dump(written), "utf-8")
    (tmp_path / "request.json").write_text(json.dumps({"length": 10}), "utf-8")
    batches = library("ours", "Training")(tmp_path).batches
    assert [(batch.source.shape[0], batch.source_valid.all()) for batch in batches] == [(4, True)] * STEPS


@pytest.mark.reliability
def test_the_sides_take_turns_in_processes_of_their_own():
    ours, plain = measure_step("tiny", SMALL, ["paddle"], rounds=2)
    assert [row.side for row in (ours, plain)] == ["ours", "paddle"]
    assert all(len(row.seconds) == 2 and row.units > 0 and row.peak_mib > 50 for row in (ours, plain))
    assert plain.computes["variables"] == {}, "as it comes"
    assert ours.computes["variables"]["FLAGS_use_stride_kernel"] == "0"
    assert float(plain.same.split()[2]) < 1e-5
    lines = table([("step, tiny", [ours, plain])]).splitlines()
    assert len(lines) == 4 and {line.count("|") for line in lines} == {len(HEADINGS) + 1}


# ------------------------------------------------------------------------------------------------------------ searches


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that has learned as much as that padding is no word (JoeyNMT does not forbid it)."""
    lines = [
        *TINY,
        "model.head={name: linear, bias: false}",
        "train.steps=150",
        "evaluate.every=150",
        "train.max_tokens=256",
        "task={name: copy, test: 20, valid: 10}",
        "train.schedule={name: constant, learning_rate: 0.01}",
        "seeds=[1]",
    ]
    return paddle_tfm.run("base", lines, out=tmp_path_factory.mktemp("run") / "runs")[0]


@pytest.mark.slow
@pytest.mark.parametrize("side", ["ours-ctranslate2", "torch-tuned", "joeynmt", "ctranslate2"])
def test_with_the_weights_of_a_run_a_side_writes_the_same(trained, tmp_path, side):
    (tmp_path / "request.json").write_text(json.dumps({"run": str(trained)}), "utf-8")
    ours = library("ours", "Search")(tmp_path)
    theirs = library(side, "Search")(tmp_path, side)
    outputs = ours.turn("greedy")
    assert len(outputs) == 20 and any(outputs)
    assert theirs.turn("greedy") == outputs
    if side in sides.SEARCH["beam"]:
        assert len(theirs.turn("beam")) == len(ours.turn("beam"))


@pytest.mark.reliability
def test_a_side_without_such_a_model_is_left_out_and_refused_where_it_is_asked_for(tmp_path):
    lines = ["search={name: greedy, max_length: 3}", "train.steps=1", "evaluate.every=1", "task={name: copy, test: 2}"]
    run = paddle_tfm.run("base", [*TINY, *lines, "model.norm=rms", "seeds=[1]"], out=tmp_path / "runs")[0]
    (tmp_path / "request.json").write_text(json.dumps({"run": str(run)}), "utf-8")
    reason = library("ours", "Search")(tmp_path).facts()["lacking"]["torch-tuned"]
    assert reason == "it has model.norm layer, and the run rms"
    if importlib.util.find_spec("torch") is None:  # the extra [bench]
        return
    with pytest.raises(UserError, match=r"the side 'torch-tuned' has no such model: it has model.norm layer"):
        measure_search(run, ["torch-tuned"], rounds=1)


# ------------------------------------------------------------------------------------------ what is said, and refused


def test_ratios_are_taken_within_a_turn():
    row = Row("paddle", [3.0, 8.0, 8.0], [1.0, 2.0, 4.0], 4, 400, "", 500, {})
    assert (row.milliseconds, row.per_second) == (2000, 50)
    assert row.ratio == (3.0, 2.0, 4.0)
    assert row.undisturbed == 3.0


@pytest.mark.parametrize(
    ("computes", "words"),
    [
        ({"processes": 2}, "2 processes, float32"),
        ({"threads": 1, "precision": "bfloat16", "settings": "fused Adam"}, "1 thread, bfloat16, fused Adam"),
        ({"variables": {"MKL_DEBUG_CPU_TYPE": "7"}}, "2 threads, float32, MKL_DEBUG_CPU_TYPE=7"),
    ],
)
def test_a_side_says_how_it_computes(computes, words):
    plain = {"threads": 2, "processes": 1, "precision": "float32", "variables": {}, "settings": ""}
    assert how({**plain, **computes}) == words


def test_the_paddle_side_starts_from_the_environment_as_it_comes(monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_DEBUG_CPU_TYPE", "FLAGS_use_stride_kernel", "MALLOC_TOP_PAD_"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("SOMETHING_ELSE", "7")
    monkeypatch.setattr(runtime, "SETTINGS", [runtime.Setting("MKL_DEBUG_CPU_TYPE", "7", "")])
    monkeypatch.setattr(runtime, "too_late", False)
    plain, ours = sides.environment("paddle"), sides.environment("ours")
    assert [name for name, value in plain.items() if value == "7"] == ["SOMETHING_ELSE"]
    assert ours["OMP_NUM_THREADS"] == "7", "what the user set stays"
    assert "MKL_DEBUG_CPU_TYPE" not in ours, "what this process set is set anew"


def test_real_text_is_taken_where_there_is_some(tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLE_TFM_DATA", str(tmp_path))
    assert measure.common_recipe("small")["task"] == {"name": "dates"}
    files = [tmp_path / f"train.{language}.gz" for language in ("en", "de")]
    for file in files:
        file.write_bytes(b"")
    assert measure.common_recipe("small")["task"] == {"name": "parallel", "train": [str(file) for file in files]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.norm=rms"], "override 'model.norm': the benchmark sets it to what `paddle.nn.Transformer` has"),
        (["train.optimizer.beta1=0.5"], "override 'train.optimizer.beta1': the benchmark sets it"),
        (["model.d_modle=3"], "model.d_modle"),
        (["--side", "pytorch"], "'pytorch' is not one of"),
        (["--decode", "nowhere", "--length", "9"], "--decode takes everything from the run"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(arguments, message):
    done = CliRunner().invoke(main, arguments)
    assert message in done.output + str(done.exception) and isinstance(done.exception, (SystemExit, UserError))


@pytest.mark.reliability
def test_a_run_that_is_not_there_is_one_sentence_and_exit_status_2():
    command = [sys.executable, "-m", "benchmarks", "--decode", "nowhere", "--side", "ours-ctranslate2"]
    done = subprocess.run(command, cwd=sides.ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "nowhere: no run is here" in done.stderr and "Traceback" not in done.stderr


def test_a_library_that_lacks_another_is_named_with_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "joeynmt").mkdir()
    (tmp_path / "joeynmt" / "__init__.py").write_text("import a_package_that_is_missing")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    message = r"the side 'joeynmt' cannot be loaded: .*pip install"
    with pytest.raises(UserError, match=message):
        process.Process("joeynmt", "Search", tmp_path)
