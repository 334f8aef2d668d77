"""`paddle-tfm run --dry-run`."""

import json

import pytest
from command_line import TINY, call

LINE = ("run", "reverse", *TINY, "model.norm=layer,rms", "--workers=1")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_dry_run_says_what_it_would_cost_and_writes_nothing(trained, tmp_path):
    done = call(*LINE, "--seeds", "3", "--dry-run", "--json")
    assert done.status == 0, done.err
    forecast = json.loads(done.out)
    assert (forecast["runs"], forecast["at_once"]) == (6, 1)
    layer = forecast["variants"][0]
    results = json.loads((trained.folder / "results.json").read_text("utf-8"))  # the same run, trained
    assert (layer["variant"], layer["parameters"]) == ("layer", results["parameters"])
    assert layer["tokens"] == pytest.approx(results["tokens"], rel=0.25)  # four steps by the mean of twenty
    assert [(each["what"], each["number"]) for each in forecast["sees"]] == [("a variant against layer", 1)]
    assert forecast["seconds"] == pytest.approx(3 * sum(each["seconds"] for each in forecast["variants"]), abs=1)
    assert not list(tmp_path.iterdir())


def test_validation_sets_of_your_own_count_with_every_evaluation():
    """After each of twelve steps, and once at the end: thirteen times the large set, or once."""

    def seconds(more):
        own = f"evaluate.tests.own={{split: valid, task: {{valid: 500}}{more}}}"
        done = call("run", "reverse", *TINY, own, "evaluate.examples=500", "evaluate.every=1", "--dry-run", "--json")
        assert done.status == 0, done.err
        return json.loads(done.out)["seconds"]

    assert seconds(", while_training: true") > 3 * seconds("")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--dry-run", "--cell", "layer/seed-1"], "--dry-run is about all runs of a recipe, and --cell about one"),
        (["--dry-run", "--executor", "local"], "--dry-run measures this machine, and --executor trains elsewhere"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence_and_nothing_is_written(options, sentence, tmp_path):
    done = call(*LINE, *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err
    assert not list(tmp_path.iterdir())
