"""`paddle-tfm check` of runs; and what it is no use for."""

import json
import re
import shutil

import pytest
from command_line import call


@pytest.fixture
def out(trained, tmp_path, monkeypatch):
    """A folder of two runs, in the current one: `out/default/seed-1`, `out/copied/seed-1`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained.folder, tmp_path / "out/default/seed-1")
    shutil.copytree(trained.folder, tmp_path / "out/copied/seed-1")
    return tmp_path / "out"


def test_each_run_of_a_folder_is_checked(out):
    done = call("check", "out")
    assert done.status == 0, done.err
    assert [line for line in done.out.splitlines() if line.startswith("out/")] == [
        "out/copied/seed-1",
        "out/default/seed-1",
    ]
    assert "bad" not in done.out and done.out.count("this run is finished") == 2
    (out / "copied/seed-1/predictions.tsv").write_text("")
    done = call("check", "out", "--without-data", "--json")
    assert done.status == 1 and "data" not in done.out.replace("out/", "")
    marks = {each["run"]: {row["subject"]: row["mark"] for row in each["findings"]} for each in json.loads(done.out)}
    assert marks["out/copied/seed-1"].pop("manifest.json") == "bad"
    assert {*marks["out/copied/seed-1"].values(), *marks["out/default/seed-1"].values()} == {"ok"}


@pytest.mark.parametrize("gone", ["recipe.yaml", "identity.json", "checkpoints"])
def test_half_a_run_is_named(gone, out):
    half = out / "default/seed-1" / gone
    shutil.rmtree(half) if half.is_dir() else half.unlink()
    done = call("check", "out/default/seed-1")
    assert done.status == 2 and done.out == ""
    assert re.fullmatch(rf"Error: out/default/seed-1: half a run: .*{gone}.*\n", done.err)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["empty"], "empty: no run is here, and no recipe; `paddle-tfm ls runs` shows where runs are"),
        (["reverse", "quickstart"], "reverse quickstart: check takes one recipe, or one folder"),
        (["out", "out/default"], "out out/default: check takes one recipe, or one folder"),
        (["out/default", "model.norm=rms"], "model.norm=rms: is for a recipe, but out/default is a folder"),
        (["out/default/seed-1", "--resume"], "--resume proves that a recipe resumes, but out/default/seed-1 is a fol"),
        (["out", "--no-step"], "--no-step belongs to `check RECIPE`, not to `check RUN`"),
        (["reverse", "--cell=a/seed-1"], "--cell belongs to `check RECIPE --resume`, not to `check REC"),
        (["reverse", "--without-data"], "--without-data belongs to `check RUN`, not to `check RECIPE`"),
        (["reverse", "--device=cpu"], "--device belongs to `check RECIPE --resume` and `check RUN`, not to"),
        (["empty", "--resume"], "--resume proves that a recipe resumes, but empty is a folder"),
        (["runs/none"], "unknown recipe 'runs/none'"),
    ],
)
def test_what_it_is_no_use_for_is_said_in_one_sentence(words, sentence, out):
    (out.parent / "empty").mkdir()
    done = call("check", *words)
    assert done.status == 2 and done.out == ""
    assert done.err.startswith(f"Error: {sentence}") and done.err.count("\n") == 1
