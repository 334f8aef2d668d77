"""`compare` and `--resume` of runs that are not what one command would have trained, and of runs that were damaged."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree, rmtree

import pytest
from command_line import TINY, call

from paddle_tfm.cli.compare import comparison_of
from paddle_tfm.comparison.verdict import verdict
from paddle_tfm.predictions import predictions_file, read_predictions

RECIPE = ("run", "reverse", *TINY, "variants={pre: {}, post: {model.placement: post}}", "baseline=pre", "--workers=1")
OTHERWISE = {  # sweep → the variants that are compared of it, and what its recipe says otherwise
    "as asked": ("pre post", ()),
    "steps": ("pre post", ("train.steps=2",)),
    "baseline": ("pre post", ("baseline=post",)),
}


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory) -> Path:
    """Sweeps of the same two variants, each with one thing that its recipe says otherwise. Tests leave them as they
    are."""
    folder = tmp_path_factory.mktemp("sweeps")
    for name, (variants, more) in OTHERWISE.items():
        for variant in variants.split():
            done = call(*RECIPE, *more, "--out", folder / name, "--cell", f"{variant}/seed-1")
            assert done.status == 0, done.err
    return folder


@pytest.fixture
def copied(sweeps, tmp_path, monkeypatch) -> Path:
    """A sweep as it was asked for."""
    monkeypatch.chdir(tmp_path)
    return copytree(sweeps / "as asked", tmp_path / "out")


@pytest.fixture
def compared(capsys):
    """What is said of a comparison of folders, on standard error too."""

    def said(*folders):
        text = verdict(comparison_of(folders))
        return " ".join([text, *capsys.readouterr().err.split()])

    return said


def test_two_runs_on_draws_of_their_test_are_no_exception(sweeps):
    runs = sweeps / "as asked/pre/seed-1", sweeps / "steps/post/seed-1"
    done = call("compare", *runs, "--bootstrap", "--draws", 10)
    assert done.status == 0 and "they differ in more than one thing: " in done.err and "train.steps is 4 in" in done.err


@pytest.mark.parametrize(
    ("other", "named"), [("steps", "train.steps is 4 in pre/seed-1, and 2 in post/seed-1."), ("as asked", "")]
)
def test_compare_names_what_differs_beyond_the_variants(other, named, sweeps, compared):
    """Whatever else it may be: tests/comparison/test_gaps.py."""
    said = compared(sweeps / "as asked/pre", sweeps / other / "post")
    assert ("differs from “pre” in what is not compared" in said) == bool(named)
    assert named in said and "model.placement" not in said  # which is what the recipes compare


def test_a_run_of_another_recipe_among_those_of_a_sweep_is_not_compared(sweeps, copied):
    rmtree(copied / "post")
    copytree(sweeps / "steps/post", copied / "post")
    done = call("compare", copied)
    assert done.status == 2 and "“pre” and “post” also differ in what is not compared: " in done.err
    assert call(*RECIPE, "--out", copied, "--resume").status == 0  # which may be continued


def test_runs_without_a_record_of_their_variants_may_differ_in_one_setting(sweeps, tmp_path, compared):
    for name, variant in (("as asked", "pre"), ("as asked", "post"), ("steps", "pre"), ("steps", "post")):
        copytree(sweeps / name / variant, tmp_path / name / variant)
    one, other = tmp_path / "as asked", tmp_path / "steps"
    assert "also differs" not in compared(one / "pre", one / "post")
    assert "also differs" not in compared(one / "pre", other / "pre")
    said = compared(one / "pre", other / "post")
    assert "also differs" in said and "model.placement is pre in" in said and "train.steps is 4 in" in said


@pytest.mark.parametrize(
    ("file", "mended"),
    [
        ("results.json", "results.json to have it scored again"),
        ("predictions.tsv", "results.json to have it scored again"),
        ("metrics.jsonl", "post/seed-1 to train this run again"),
        ("recipe.yaml", "post/seed-1 to train this run again"),
        ("checkpoints/best/model.safetensors", "post/seed-1 to train this run again"),
    ],
)
def test_a_flipped_byte_of_a_finished_run_is_found(file, mended, copied, compared):
    path = copied / "post/seed-1" / file
    content = path.read_bytes()
    place = content.rindex(b"0.") + 2 if file == "results.json" else len(content) // 2  # another digit, still a number
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    resumed = call(*RECIPE, "--out", copied, "--resume")
    assert resumed.status == 2 and f"{file}: damaged: " in resumed.err and mended in resumed.err
    said = compared(copied)
    assert f"{file}: damaged: its content is not what was saved" in said
    assert ("this run is left out" in said) != file.startswith("checkpoints")  # its scores are what they were
    assert call("check", copied / "post/seed-1", "--without-data").status == 1
    if "scored again" in mended:
        (copied / "post/seed-1/results.json").unlink()
        assert call(*RECIPE, "--out", copied, "--resume").status == 0 and path.exists()
        assert "damaged" not in compared(copied)
        assert file == "results.json" or path.read_bytes() == content


def test_a_run_whose_files_are_gone_in_part_is_compared(copied, compared):
    for name in ("predictions.tsv", "metrics.jsonl", "recipe.yaml", "identity.json"):
        (copied / "post/seed-1" / name).unlink()
    rmtree(copied / "post/seed-1/checkpoints")
    assert "damaged" not in compared(copied)


def test_models_of_other_pieces_are_not_compared_by_what_is_per_piece(tmp_path, compared):
    """The number of pieces is counted again: words, characters with spaces, and an end of each."""
    recipe = ["reverse", *TINY, "tokenizer=word,char", "evaluate.best=perplexity"]
    recipe += ["evaluate.metrics=[exact_match, perplexity]"]
    said = " ".join(call("check", *recipe, "--no-step").out.split())
    assert (
        "variants differ in tokenizer or vocabulary: they are not compared by it; `evaluate.best` may be exact" in said
    )
    for variant in ("word", "char"):
        assert call("run", *recipe, "--out", tmp_path, "--cell", f"{variant}/seed-1").status == 0
    rows = read_predictions(predictions_file(tmp_path / "word/seed-1"))
    words, characters = (sum(len(cut(row.reference)) + 1 for row in rows) for cut in (str.split, str))
    said = compared(tmp_path)
    assert f"per piece, and the references are {characters} to “char” and {words} to “word”" in said
    assert said.startswith("Nothing can be compared: perplexity is a number per piece")


def test_the_baseline_of_two_folders_is_that_of_their_recipes(sweeps, tmp_path, compared):
    one, other = sweeps / "as asked", sweeps / "baseline"
    assert comparison_of([other]).baseline == "post"
    said = compared(other / "pre", one / "post")
    assert "the recipes name different baselines, “post” in" in said and "“post” is taken, and --baseline" in said
    assert "different baselines" not in compared(one / "pre", sweeps / "steps" / "post")
    again = copytree(other, tmp_path / "again")
    assert call("compare", again, "--baseline", "pre").status == 0
    assert comparison_of([again]).baseline == "post"  # whatever it was compared with meanwhile
