"""`paddle-tfm compare` of folders from anywhere: what can be compared, and what cannot be."""

import csv
import html
import io
import json
import re

import pytest
from command_line import call

TASK = "task: {name: reverse, max_length: 12}\n"


def finished(folder, variant, seed, score, data="texts"):
    """A folder as a finished run leaves it, but for its checkpoints."""
    folder = folder / variant / f"seed-{seed}"
    folder.mkdir(parents=True)
    results = {"recipe": "reverse", "variant": variant, "seed": seed, "data": data, "steps": 4, "best_step": 4}
    results |= {"parameters": 7, "tokens": 8, "seconds": 1.0, "tokens_per_second": 8.0, "diverged": None}
    results |= {"directions": {"bleu": True}, "units": {"bleu": "points"}, "signatures": {"bleu": "v1"}}
    (folder / "results.json").write_text(json.dumps({**results, "valid": {}, "test": {"bleu": score}}), "utf-8")
    (folder / "recipe.yaml").write_text(f"{TASK}evaluate: {{best: bleu}}\n", "utf-8")
    return folder


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_runs_from_anywhere_are_paired_by_seed(tmp_path):
    one, other = (finished(tmp_path / place, "default", 1, score) for place, score in (("a/x", 20.0), ("b", 21.5)))
    done = call("compare", one, other, "--out", "both", "--json")
    assert done.status == 0, done.err
    rows = {row["variant"]: row for row in json.loads(done.out)["rows"]}
    assert rows[f"{other}/default"]["difference"]["mean"] == 1.5


def test_two_variants_begin_with_all_in_which_they_differ(tmp_path):
    for variant, more in (("layer", {}), ("rms", {"paddle": "3.4 def", "shards": 1})):
        folder = finished(tmp_path / "a", variant, 1, 20.0)
        (folder / "recipe.yaml").write_text(f"{TASK}evaluate: {{best: bleu}}\nmodel: {{norm: {variant}}}\n", "utf-8")
        identity = {"paddle": "3.3 abc", "shards": 2, **more}
        (folder / "identity.json").write_text(json.dumps(identity), "utf-8")
        file = folder / "results.json"
        file.write_text(file.read_text().replace('"parameters": 7', f'"parameters": {100 + len(more)}'))
    done = call("compare", "a")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "In what rms differs from layer"
    table = "\n".join(lines[: lines.index("")])
    assert re.search(r"settings +model.norm +layer \(eps 1e-05.*\) +rms \(eps ", table)
    assert re.search(r"build +paddle +3.3 abc +3.4 def +may change last bits: another build may have other kern", table)
    assert re.search(r"build +shards +2 +1 +changes last bits: the gradients of a batch are summed in other pa", table)
    assert "2.0% more parameters than layer: this may explain a difference of scores" in table
    sections = json.loads(call("compare", "a", "--json").out)["sections"]
    assert [(row["section"], row["what"]) for row in sections["gaps"]["rms"]] == [
        ("settings", "model.norm"), ("build", "paddle"), ("build", "shards"),
    ]  # fmt: skip
    assert sections["costs"]["rms"][0]["sentence"].startswith("2.0% more parameters")
    assert "another build may have other kernels" in (tmp_path / "a/comparison.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a", "runs/none"], "runs/none: no such folder; `compare` takes the folders of finished runs"),
        (["empty"], "empty: no finished run is here; `paddle-tfm ls runs` shows where they are"),
        (["reverse", "quickstart"], "reverse: is a recipe, whose variants `paddle-tfm run` trains and compares"),
        (["a", "mine.yaml"], "mine.yaml: is a recipe, whose variants `paddle-tfm run` trains and compares"),
        (["a", "half"], "half: half a run: it has no results.json; `paddle-tfm check half` says where --resume"),
        (["a", "half", "--bootstrap"], "half: half a run: it has no results.json"),
    ],
)
def test_what_is_no_finished_run_is_said_in_one_sentence(words, sentence, tmp_path):
    finished(tmp_path / "a", "layer", 1, 20.0)
    for name in ("empty", "half"):
        (tmp_path / name).mkdir()
    (tmp_path / "half/identity.json").write_text("{}", "utf-8")
    (tmp_path / "mine.yaml").write_text("base: reverse\n", "utf-8")
    done = call("compare", *words)
    assert done.status == 2 and done.out == "" and not (tmp_path / "a/comparison.json").exists()
    assert done.err.startswith(f"Error: {sentence}") and done.err.count("\n") == 1


def test_what_cannot_be_compared_is_refused_with_the_reason_and_nothing_is_written(tmp_path):
    finished(tmp_path / "a", "layer", 1, 20.0)
    finished(tmp_path / "b", "rms", 1, 30.0, data="other")
    sentence = "“rms” is scored on other texts than “layer”: the task is the same, but not its texts"
    done = call("compare", "a", "b", "--out", "both")
    assert done.status == 2 and done.out == "" and "Traceback" not in done.err
    assert f"Error: nothing can be compared: {sentence}" in done.err
    assert not (tmp_path / "both").exists()


def test_the_commands_that_are_shown_can_be_copied(tmp_path):
    for seed in (1, 2):
        finished(tmp_path / "-my runs", "layer", seed, 20.0 + seed)
    done = call("compare", "--", "-my runs")
    assert done.status == 0 and "curves  paddle-tfm board './-my runs'\n" in done.out, done.err
    page = (tmp_path / "-my runs/comparison.html").read_text("utf-8")
    commands = {html.unescape(re.sub("<.*?>", "", code)) for code in re.findall(r"<code>(paddle-tfm .*?)</code>", page)}
    assert commands == {
        *(f"paddle-tfm {verb} './-my runs'" for verb in ("board", "compare", "report")),
        *(f"paddle-tfm run './-my runs/layer/seed-{seed}/recipe.yaml' --out runs/again" for seed in (1, 2)),
    }


def blocks(monkeypatch, *arguments):
    """The tables of --csv, each a list of rows; the same in both languages."""
    english = call("compare", *arguments, "--csv").out
    monkeypatch.setenv("LANGUAGE", "zh")
    assert call("compare", *arguments, "--csv").out == english
    return [list(csv.DictReader(io.StringIO(text))) for text in english.split("\n\n")]


def test_csv_has_the_effects_of_a_grid(tmp_path, monkeypatch):
    scores = {
        "layer-none": (20.0, 21.0),
        "layer-alibi": (24.0, 25.5),
        "rms-none": (20.5, 21.0),
        "rms-alibi": (25, 26.5),
    }
    for variant, values in scores.items():
        for seed, score in enumerate(values, 1):
            finished(tmp_path / "a", variant, seed, score)
    factors = {
        f"model.{key}": {name: name.split("-")[i] for name in scores} for i, key in enumerate(("norm", "position"))
    }
    (tmp_path / "a/command.json").write_text(json.dumps({"factors": factors}), "utf-8")
    variants, matrix, effects = blocks(monkeypatch, "a", "--baseline", "layer-none")
    assert {row["variant"] for row in variants} == scores.keys()
    assert [row["norm"] for row in matrix] == ["layer", "rms"] and float(matrix[0]["alibi"]) == 24.75
    differences = {row["levels"]: float(row["difference"]) for row in effects}
    assert differences == pytest.approx(
        {"model.norm=rms": 0.625, "model.position=alibi": 4.625, "model.norm=rms model.position=alibi": 0.75}
    )
    assert all(row["verdict"] == "undetermined" and float(row["low"]) < float(row["high"]) for row in effects)


def test_csv_has_the_models_of_ablate(tmp_path, monkeypatch):
    for variant, score in (("full", 25.0), ("without-norm", 20.0)):
        finished(tmp_path / "a", variant, 1, score)
    (tmp_path / "a/command.json").write_text(json.dumps({"taken_away": {"without-norm": "norm: rms → none"}}), "utf-8")
    _, models = blocks(monkeypatch, "a", "--baseline", "full")
    assert [(row["model"], float(row["difference"] or 0)) for row in models] == [
        ("full", 0),
        ("− norm: rms → none", -5),
    ]
