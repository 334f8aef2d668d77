"""`run`, `compare` and `report` with further tests, from files to the page: one small sweep, and what becomes of it."""

from __future__ import annotations

import csv
import io
import json

import pytest
from command_line import call

pytestmark = pytest.mark.reliability

RECIPE = """
base: base.yaml
name: files
task: {name: parallel, train: train.tsv, valid: valid.tsv, test: test.tsv}
model: {d_model: 16, num_heads: 2, d_ff: 16, encoder_layers: 1, decoder_layers: 1, max_length: 24}
train: {steps: 6, max_tokens: 128}
evaluate:
  every: 6
  metrics: [exact_match, token_accuracy]
  tests:
    new: {task: {test: new.tsv}}
    alone: {batch: 1}
baseline: layer
variants: {layer: {}, wrong: {model.norm: {encoder: clinic_batch_statistics, decoder: layer}}}
seeds: [1, 2]
claims:
  new-texts-are-no-better:
    says: On new texts the wrong norm is no better.
    source: of our own
    metric: token_accuracy@new
    variant: wrong
    over: layer
    within: 50
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with the files, the recipe and its runs. Tests leave it as it is."""
    folder = tmp_path_factory.mktemp("swept")
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    pairs = [f"{a} {b} {c}\t{c} {b} {a}\n" for a in words for b in words for c in words[:3]]
    for name, rows in {"train": pairs[:80], "valid": pairs[80:90], "test": pairs[90:100], "new": pairs[76:96]}.items():
        (folder / f"{name}.tsv").write_text("".join(rows), "utf-8")
    (folder / "mine.yaml").write_text(RECIPE, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = call("run", "mine.yaml", "--out", "runs")
        assert done.status == 0, done.err
    return folder, done


@pytest.fixture
def runs(swept, monkeypatch):
    folder, _ = swept
    monkeypatch.chdir(folder)
    return folder / "runs"


def test_the_end_of_a_sweep_says_how_the_further_tests_went(swept):
    _, done = swept
    own = "in the training split too: 0 of 10 sources and 0 pairs of valid; 0 of 10 sources and 0 pairs of test; "
    assert all(f"{own}4 of 20 sources and 4 pairs of test@new\n" in text for text in (done.out, done.err))
    lines = done.out.splitlines()
    assert any(line.startswith("token accuracy") or "exact match@new" in line for line in lines)
    assert "exact match@alone: wrong " in done.out and "adjusted for 1 variant on 2 tests (Holm)" in done.out
    assert "alone: 0 of 20 outputs of “layer” changed" in done.out
    assert "token accuracy@new of wrong against layer: " in done.out


def test_programs_get_the_same(runs):
    data = json.loads((runs / "comparison.json").read_text("utf-8"))
    said = data["sections"]["tests"]
    assert {(each["test"], each["variant"]) for each in said["differences"]} == {("new", "wrong"), ("alone", "wrong")}
    (claim,) = data["claims"]
    values = {(run["variant"], run["seed"]): run["tests"]["new"]["scores"]["token_accuracy"] for run in data["runs"]}
    differences = [values["wrong", seed] - values["layer", seed] for seed in (1, 2)]
    assert claim["mean"] == pytest.approx(sum(differences) / 2)
    done = call("compare", "runs", "--metric", "token_accuracy@new", "--out", "elsewhere", "--csv")
    assert done.status == 0, done.err
    rows = {row["variant"]: row for row in csv.DictReader(io.StringIO(done.out))}
    assert float(rows["wrong"]["difference"]) == pytest.approx(sum(differences) / 2)
    assert {"token_accuracy@new", "token_accuracy@alone", "exact_match"} <= set(rows["layer"])


def test_the_page_has_a_section_for_them(runs):
    page = (runs / "comparison.html").read_text("utf-8")
    assert "Further tests" in page and "exact match@new" in page and "What other batches changed" in page
    done = call("report", "runs/layer/seed-1")
    assert done.status == 0, done.err
    card = (runs / "layer/seed-1/report.html").read_text("utf-8")
    assert ">new</th>" in card and ">alone</th>" in card


def test_a_trained_run_can_be_tested_again(runs):
    """By the wrong model, whose outputs depend on the batch."""
    recorded = json.loads((runs / "wrong/seed-1/results.json").read_text("utf-8"))["tests"]["alone"]
    done = call("evaluate", "runs/wrong/seed-1", "--test", "alone", "--json", "--out", "alone.tsv")
    assert done.status == 0, done.err
    again = json.loads(done.out)
    assert again["metrics"] == pytest.approx(recorded["scores"])
    assert again["changed_outputs"] == recorded["changed_outputs"] > 0
    assert again["drift"] == pytest.approx(recorded["drift"])


def test_texts_of_a_further_test_that_changed_are_noticed(swept, runs):
    folder, _ = swept
    before = (folder / "new.tsv").read_text("utf-8")
    (folder / "new.tsv").write_text(before + "one one one\tone one one\n", "utf-8")
    try:
        done = call("run", "mine.yaml", "--out", "runs", "--resume")
        assert done.status == 2
        assert "cannot be resumed: data changed (the texts of test@new)" in done.err
        done = call("evaluate", "runs/layer/seed-1", "--test", "new")
        assert "its test@new texts changed since the training" in done.err
    finally:
        (folder / "new.tsv").write_text(before, "utf-8")
    assert call("run", "mine.yaml", "--out", "runs", "--resume").status == 0
