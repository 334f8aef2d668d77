"""Files of a run that are damaged within: each costs its own run, with a sentence, and no other. The real command line in
this process."""

import json
import re
import shutil
from xml.etree import ElementTree

import pytest
from recipe_text import TINY_MODEL

from paddle_tfm.cli import main

pytestmark = pytest.mark.reliability
SWEEP = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 4, train: 60, valid: 10, test: 10}",
    *TINY_MODEL,
    "train.max_tokens=64", "train.steps=2", "evaluate.every=2", "variants={layer: {}, rms: {model.norm: rms}}",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of two finished runs, of two variants."""
    folder = tmp_path_factory.mktemp("trained") / "sweep"
    with pytest.raises(SystemExit) as left:
        main(["run", "base", *SWEEP, "--workers", "1", "--out", str(folder)])
    assert left.value.code == 0
    return folder


@pytest.fixture
def sweep(trained, tmp_path):
    """A copy of it, one run of which a test may damage: `layer/seed-1`. Without the manifests of its runs, which
    would leave it out before anything in it is read."""
    copy = shutil.copytree(trained, tmp_path / "sweep")
    for file in copy.glob("*/seed-*/manifest.json"):
        file.unlink()
    return copy


@pytest.fixture
def call(capsys):
    """Status and all that the command says, which is no traceback."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return left.value.code, " ".join((said.out + said.err).split())

    return run


def change(file, **values):
    """The mapping in a file with some values replaced; text is written as it is."""
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **values}).replace('"1e999"', "1e999"), "utf-8")


RESULTS = [{"parameters": None}, {"valid": {"loss": 1e151}}]


@pytest.mark.parametrize("values", RESULTS, ids=lambda values: str(values)[:40])
def test_results_of_other_types_cost_their_run_alone(values, sweep, call):
    run, field = sweep / "layer/seed-1", next(iter(values))
    change(run / "results.json", **values)
    for verb in [["compare", sweep], *([["report", sweep]] if field == "parameters" else [])]:
        status, said = call(*verb)
        assert status == 0 and f"{run / 'results.json'}: damaged: " in said and "this run is left out" in said
        assert f"`{field}" in said
    status, said = call("ls", "runs", sweep)
    assert status == 0 and "1 of 2 done" in said and "1 unreadable" in said and "results.json: damaged" in said
    status, said = call("check", run)
    assert status == 1 and "bad results.json" in said
    assert call("report", run, "--quick")[0] == 0
    status, said = call("compare", run)  # the one that was asked for
    assert status == 2 and f"Error: {run / 'results.json'}: damaged: " in said


def test_controls_of_a_name_are_seen_in_reports_and_figures(sweep, call, tmp_path):
    hostile, page = "a\x1b[31m\x9bz\x07", tmp_path / "page"
    sweep = sweep.rename(tmp_path / hostile)
    change(sweep / "layer/seed-1/results.json", variant=f"{hostile}/layer")
    assert call("report", sweep, "--out", page)[0] == 0
    assert call("report", sweep / "rms/seed-1", "--quick", "--out", page)[0] == 0
    texts = {file.name: file for file in page.rglob("*") if file.suffix in (".html", ".tex", ".svg")}
    assert {file.suffix for file in texts.values()} == {".html", ".tex", ".svg"}
    for name, file in texts.items():
        text = file.read_text("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), name
        if file.suffix == ".svg":
            ElementTree.fromstring(text)
    for name in ("report.html", "comparison.html"):
        assert "a␛[31m\ufffdz␇" in texts[name].read_text("utf-8")


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    """A run whose second step could not be made."""
    folder = tmp_path_factory.mktemp("diverged")
    rate = "train.schedule={name: constant, learning_rate: 1.0e+30}"
    with pytest.raises(SystemExit):
        main(["run", "base", *SWEEP[:-1], rate, "--workers", "1", "--out", str(folder)])
    return folder / "default/seed-1"


@pytest.mark.parametrize("file", ["batches.safetensors", "state.json"])
def test_a_step_that_diverged_is_done_again_unless_what_was_kept_of_it_is_damaged(file, diverged, call, tmp_path):
    run = shutil.copytree(diverged, tmp_path / "run")
    status, said = call("check", run)
    assert status == 0 and "note divergence the loss was no number" in said and "not finite" in said
    path = run / "checkpoints/diverged" / file
    content = path.read_bytes()
    path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    status, said = call("check", run)
    assert status == 1 and f"bad diverged {path}: damaged" in said and "not finite" not in said
