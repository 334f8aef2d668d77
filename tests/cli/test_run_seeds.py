"""`paddle-tfm run` of a recipe that adds seeds: who gets more, and that neither stopping nor order changes it."""

import json
from pathlib import Path

import pytest
from command_line import call, write_recipe

pytestmark = pytest.mark.reliability

RECIPE = """
base: tiny.yaml
name: mine
baseline: long
variants: {same: {model.dropout: 0.11}, short: {train.steps: 1, evaluate.every: 1}, long: {}}
seeds: {at_most: 4, looks: [3, 4]}
smallest_effect: 0.001
train: {schedule: {name: constant, learning_rate: 0.01}}
evaluate: {best: loss, every: 30}
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_recipe(tmp_path, RECIPE, "reverse", "train.steps=30", "evaluate.every=30")


def read(folder):
    return json.loads(Path(folder, "comparison.json").read_text("utf-8"))


def test_seeds_are_added_where_the_question_is_open_and_only_there(recipe):
    done = call("run", "mine.yaml", "--workers=1", "--out=one")
    assert done.status == 0, done.err
    assert "After 3 seeds: “short” is worse; “same” needs more." in " ".join(done.err.split())
    assert "adjusted for 2 variants (Holm) and looks after 3 and 4 seeds" in " ".join(done.out.split())
    trained = sorted(path.parent.relative_to("one").as_posix() for path in Path("one").rglob("results.json"))
    assert trained == [f"{v}/seed-{s}" for v, n in (("long", 4), ("same", 4), ("short", 3)) for s in range(1, n + 1)]
    # Who watches it waits for no run that will not be, and hears the verdict of the end.
    watched = json.loads(call("ls", "runs", "one", "--json").out)
    assert watched["finished"] and len(watched["runs"]) == 11
    said = watched["sweeps"][0]["verdict"]
    assert said in " ".join(done.out.split()) and "1 is worse" in said
    rows = {row["variant"]: row["difference"] for row in read("one")["rows"]}
    assert (rows["short"]["verdict"], rows["short"]["pairs"], rows["same"]["pairs"]) == ("worse", 3, 4)
    assert rows["same"]["verdict"] == "undetermined" and rows["same"]["more"]["number"] > 0

    for seeds in ("{at_most: 4, looks: [4]}", "[1, 2, 3, 4]"):
        done = call("run", "mine.yaml", "--workers=1", "--out=one", "--resume", f"seeds={seeds}")
        assert done.status == 2 and "one cannot be resumed: seeds was {at_most: 4, looks: [3, 4]} and is " in done.err

    # The last seed first, the rest by another executor, resumed: the same runs and numbers.
    for cell in ("long/seed-4", "same/seed-4", "short/seed-2"):
        assert call("run", "mine.yaml", "--out=two", "--resume", f"--cell={cell}").status == 0
    done = call("run", "mine.yaml", "--out=two", "--resume", "--executor=local", "--workers=1")
    assert done.status == 0, done.err
    assert {row["variant"]: row["difference"] for row in read("two")["rows"]} == rows
    assert read("two")["sections"]["seeds"] == read("one")["sections"]["seeds"]
    assert [(row["seeds"], row["variant"]) for row in read("one")["sections"]["seeds"]["looks"]] == [
        (3, "same"), (3, "short"), (4, "same")
    ]  # fmt: skip
    assert not Path("two/short/seed-4").exists()

    # `compare` judges as the recipe asked.
    call("compare", "one", "--out=elsewhere")
    assert {row["variant"]: row["difference"] for row in read("elsewhere")["rows"]} == rows
    assert read("elsewhere")["question"] == {"seeds": {"at_most": 4, "looks": [3, 4]}, "smallest_effect": 0.001}

    # Before the end too: a verdict so far is adjusted for looks.
    Path("one/comparison.json").unlink()
    for name in ("long", "same"):
        Path("one", name, "seed-4/results.json").unlink()
    command = json.loads(Path("one/command.json").read_text("utf-8"))
    assert command["question"] == {"seeds": {"at_most": 4, "looks": [3, 4]}, "smallest_effect": 0.001}
    said = json.loads(call("ls", "runs", "one", "--json").out)["sweeps"][0]["verdict"]
    label, _, verdict = said.partition(": ")
    assert label == "After 3 of 4 seeds (interim, adjusted for looks)"
    done = call("compare", "one", "--out=elsewhere")
    assert verdict in " ".join(done.out.split())
    assert "looks after 3 and 4 seeds" in Path("elsewhere/comparison.html").read_text("utf-8")


def test_looks_may_be_others_until_one_could_be_taken(recipe):
    command = ["run", "mine.yaml", "--workers=1", "--out=one", "--resume"]
    for cell in ("long/seed-1", "short/seed-4"):
        assert call(*command, f"--cell={cell}").status == 0
    assert call(*command, "seeds={at_most: 4, looks: [4]}").status == 0
    done = call(*command, "seeds={at_most: 5, looks: [4, 5]}")
    assert done.status == 2 and "one cannot be resumed: seeds was {at_most: 4, looks: [4]} and is " in done.err
    done = call(*command, "seeds={at_most: 5, looks: [4, 5]}", "variants.new={model.placement: post}")
    assert done.status == 2 and "one cannot be resumed: seeds was " in done.err


def test_seeds_may_be_listed_again_and_their_looks_count(recipe):
    command = ["run", "mine.yaml", "--workers=1", "--out=one", "--resume"]
    for listed, words in (("[1, 2, 3]", "seeds that may be added"), ("[1, 2, 3, 4]", "looks after 3 seeds")):
        done = call(*command, f"seeds={listed}")
        assert done.status == 0 and f"adjusted for 2 variants (Holm) and {words}" in " ".join(done.out.split()), (
            done.err
        )
    verdicts = {row["variant"]: row["difference"] for row in read("one")["rows"]}
    assert verdicts["same"]["looks"] == [3, 4]
    done = call(*command)
    assert done.status == 2, done.out
    assert "one cannot be resumed: seeds was a list and is {at_most: 4, looks: [3, 4]}" in done.err
