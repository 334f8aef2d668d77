"""Kills while a file is written, and files that are damaged afterwards: nothing is lost that was whole, and what is
lost is told in a sentence."""

import json
import os
import shutil
from pathlib import Path

import pytest
from recipe_text import TINY_MODEL

from paddle_tfm import UserError, create_registry, files
from paddle_tfm.cli import main
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.runs.folders import find_run
from paddle_tfm.train.run import load_run

pytestmark = pytest.mark.reliability

# --------------------------------------------------------------------------------------------- killed while writing


@pytest.fixture
def kill(monkeypatch):
    """Be killed half-way through writing the next file whose name begins so, which is waited for before it takes its
    place."""
    sync = files.sync

    def at(name):
        def half(path):
            if path.name.startswith(name) and path.name.endswith(files.PARTIAL):
                os.truncate(path, path.stat().st_size // 2)
                raise KeyboardInterrupt
            sync(path)

        monkeypatch.setattr(files, "sync", half)

    return at


def compared(folder):
    return Report(compare(collect([folder]), "x", folder, "loss"), create_registry(), pytest.fail).write()


REWRITTEN = {
    "metrics.jsonl": lambda trainer: trainer.train(resume=True),
    "timings.jsonl": lambda trainer: trainer.train(resume=True),
    "predictions.tsv": lambda trainer: trainer.train(resume=True),
    "results.json": lambda trainer: trainer.train(resume=True),
    "comparison.json": lambda trainer: compared(trainer.run.folder),
    "comparison.html": lambda trainer: compared(trainer.run.folder),
    "comparison.png": lambda trainer: compared(trainer.run.folder),
}


@pytest.fixture(scope="module")
def compared_run(registry, tmp_path_factory):
    """The folder of a finished run that was compared."""
    from paddle_tfm import load_recipe
    from paddle_tfm.data.corpus import load_corpus
    from paddle_tfm.recipe.plan import plan_run
    from paddle_tfm.train.run import create
    from paddle_tfm.train.trainer import Trainer

    plan = plan_run(*load_recipe("base", SMALL).runs(), registry)
    run = create(plan, tmp_path_factory.mktemp("run") / "run", load_corpus(plan))
    Trainer(run, registry.plugins).train()
    compared(run.folder)
    return run.folder


SMALL = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 4, train: 60, valid: 10, test: 10}",
    *TINY_MODEL,
    "model.max_length=8", "train.max_tokens=64", "train.steps=4", "evaluate.every=2",
]  # fmt: skip


@pytest.mark.parametrize("name", REWRITTEN)
def test_a_file_is_whole_whenever_we_are_killed(name, compared_run, make_trainer, kill, tmp_path):
    shutil.copytree(compared_run, tmp_path / "run")
    trainer = make_trainer(*SMALL)
    before = (tmp_path / "run" / name).read_bytes()
    kill(Path(name).name)
    with pytest.raises(KeyboardInterrupt):
        REWRITTEN[name](trainer)
    assert (tmp_path / "run" / name).read_bytes() == before


# ------------------------------------------------------------------------------------------------------ damaged files


def flip(path):
    """One bad byte, which is no UTF-8 either."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x80
    path.write_bytes(content)


DAMAGES = {"removed": lambda path: path.unlink(), "a bad byte": flip}
# file → the verbs that read it, and whether each can do without it ("" if not: a sentence names the file)
FILES = {
    "identity.json": {"ls runs": "seed-2", "evaluate": "", "translate": "", "resume finished": ""},
    "recipe.yaml": {"evaluate": "", "translate": ""},
    "codec/source/vocabulary.json": {"evaluate": "", "translate": ""},
    "checkpoints/best/state.json": {"evaluate": "", "translate": "", "resume": "2 runs"},
    "checkpoints/last/state.json": {"resume": ""},
    "metrics.jsonl": {"compare": "1 run", "resume": "2 runs"},
    "timings.jsonl": {"resume": "2 runs"},
    "predictions.tsv": {"ls runs": "seed-2", "compare": "1 run", "resume": "2 runs"},
    "results.json": {"ls runs": "seed-2", "compare": "exact match", "resume finished": "2 runs"},
}
# A run that lacks a file which its scores do not need is compared; one with another file than was saved is left out.
COMPARED = {("metrics.jsonl", "removed"): "2 runs", ("predictions.tsv", "removed"): "2 runs"}
NOT_THERE = {  # said where the file is gone and so no file can be named
    ("identity.json", "evaluate"): "no run is here",
    ("identity.json", "translate"): "no run is here",
    ("identity.json", "resume finished"): None,
}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """The folder of two finished runs."""
    folder = tmp_path_factory.mktemp("sweep") / "out"
    with pytest.raises(SystemExit) as left:
        main(["run", "base", *SMALL, "seeds=[1,2]", "--workers", "1", "--out", str(folder)])
    assert left.value.code == 0
    return folder


def verbs(out):
    run = out / "default" / "seed-1"
    resume = ["run", "base", *SMALL, "seeds=[1,2]", "--workers", "1", "--out", out, "--resume"]
    return {
        "evaluate": ["evaluate", run],
        "translate": ["translate", run, "1 2"],
        "compare": ["compare", out],
        "ls runs": ["ls", "runs", out],
        "resume": resume,
        "resume finished": resume,
    }


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_damage_is_told_or_survived(file, damage, sweep, tmp_path, capsys):
    for number, (verb, survives) in enumerate(FILES[file].items()):
        out = tmp_path / str(number)
        shutil.copytree(sweep, out)
        run = out / "default" / "seed-1"
        if verb == "resume":
            (run / "results.json").unlink()  # all steps are done, but not what comes after them
        DAMAGES[damage](run / file)
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in verbs(out)[verb]])
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        expected = NOT_THERE.get((file, verb), "") if damage == "removed" else ""
        if verb == "compare":
            survives = COMPARED.get((file, damage), survives)
        if survives or expected is None:
            assert left.value.code == 0, f"{verb}: {said.err}"
            assert survives in said.out, verb
            if verb == "ls runs" and damage == "a bad byte":
                assert "1 unreadable" in said.out and str(run / file) in said.out.replace("\n", "")
        else:
            assert left.value.code == 2, verb
            named = expected or str(run / file)
            assert named in said.err, f"{verb}: {said.err}"
        if verb.startswith("resume") and survives:
            assert json.loads((run / "results.json").read_text())["test"]["loss"] > 0


# ------------------------------------------------------------------------------------------------------- finding runs


def test_runs_are_found_however_deep(make_trainer, registry, tmp_path):
    trainer = make_trainer("train.steps=2", "evaluate.every=2", folder="runs/quick/default/seed-1")
    trainer.train()
    assert find_run(tmp_path / "runs") == trainer.run.folder
    assert load_run(tmp_path / "runs", registry).step == 2
    (tmp_path / "runs/other/x/seed-2").mkdir(parents=True)
    (tmp_path / "runs/other/x/seed-2/identity.json").write_text("{}")
    with pytest.raises(UserError, match=r"holds 2 runs; choose one:\n.*other/x/seed-2\n.*quick/default/seed-1"):
        find_run(tmp_path / "runs")
    for nothing in (tmp_path / "nowhere", tmp_path / "runs/other/x/seed-2/identity.json"):
        with pytest.raises(UserError, match="no run is here"):
            find_run(nothing)
