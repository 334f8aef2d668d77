"""`paddle-tfm run --dry-run` and `--budget`."""

import json

import pytest
from command_line import TINY, call

from paddle_tfm.cli.run import Duration

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
    assert forecast["seconds"] == pytest.approx(3 * sum(each["seconds"] for each in forecast["variants"]), abs=1)
    assert not list(tmp_path.iterdir())


def test_a_budget_becomes_seeds_which_a_resumed_sweep_keeps(tmp_path):
    done = call(*LINE, "--seeds", "2", "--budget", "2h", "--out", "out", "--json")
    assert done.status == 0, done.err
    assert "2 seeds of 2 variants: about" in done.err
    assert len(json.loads(done.out)["runs"]) == 4
    assert "seeds=[1, 2]" in json.loads((tmp_path / "out/command.json").read_text("utf-8"))["command"]
    done = call(*LINE, "--budget", "1s", "--out", "out", "--resume", "--json")  # what began is what is continued
    assert done.status == 0 and done.err.count("is finished already") == 4 and "--resume continues" not in done.err
    done = call(*LINE, "--budget", "1s", "--out", "out", "--resume", "--json", "--seeds", "3")
    assert done.status == 0 and done.err.count("is finished already") == 4
    assert "--resume continues seeds=[1, 2], with which --budget began, and not seeds=[1, 2, 3]: leave" in done.err


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("2h", 7200), ("1h30m", 5400), ("1.5m", 90)])
def test_a_budget_is_a_time(text, seconds):
    assert Duration().convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--budget", "1s"], "--budget: 2 seeds of 2 variants take about"),
        (["--budget", "soon"], "--budget soon: must be a duration, such as 30m, 2h, 90s or 1h30m"),
        *((["--budget", text], f"--budget {text}: must be a duration") for text in ("m", "1h30x", "-1s", "1e3s", "2")),
        (["--budget", "0m"], "--budget: 2 seeds of 2 variants take about"),
        (["--budget", "1h", "--cell", "layer/seed-1"], "--budget is about all runs of a recipe, and --cell about one"),
        (["--dry-run", "--executor", "local"], "--dry-run measures this machine, and --executor trains elsewhere"),
        (["--dry-run", "model.norm.epz=1"], "'model.norm.epz' changes nothing beside several values of model.norm"),
        (["--dry-run", "train.stps=1"], "unknown key 'stps'; did you mean 'steps'?"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence_and_nothing_is_written(options, sentence, tmp_path):
    done = call(*LINE, *options)
    assert done.status == 2 and sentence in done.err and "Traceback" not in done.err
    assert not list(tmp_path.iterdir())
