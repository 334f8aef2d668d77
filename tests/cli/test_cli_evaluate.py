"""`evaluate` and `compare --bootstrap`: signatures, scores by length, texts of other systems, JSON, and what is
refused."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil

import pytest
from command_line import TINY, call

from paddle_tfm.predictions import read_predictions, write_predictions
from paddle_tfm.recipe import yaml_lines
from paddle_tfm_plugins.metric.bleu import Bleu

METRICS = ["exact_match", "token_error_rate", "perplexity", {"name": "bleu", "tokenize": "none"}, "word_error_rate"]
OF_TEXTS = ["exact_match", "bleu", "word_error_rate"]


@pytest.fixture
def copied(trained, tmp_path, monkeypatch):
    """copied(name, metrics): a copy of the trained run that is scored by these metrics."""
    monkeypatch.chdir(tmp_path)

    def copy(name="run", metrics=METRICS, **sections):
        shutil.copytree(trained.folder, tmp_path / name)
        recipe = tmp_path / name / "recipe.yaml"
        data = yaml_lines.load_file(recipe)[0]
        data["evaluate"]["metrics"] = metrics
        data["evaluate"]["best"] = "loss"
        data |= sections
        recipe.write_text(yaml_lines.dump(data), "utf-8")
        return tmp_path / name

    return copy


@pytest.fixture
def run(copied):
    return copied()


def scores(*arguments):
    """What `--json` says, and nothing else."""
    done = call("evaluate", *arguments, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def references(run):
    return [each.reference for each in read_predictions(run / "predictions.tsv")]


# ------------------------------------------------------------------------------------------------------------ evaluate


def test_signatures_stand_below_the_table(run):
    done = call("evaluate", "run")
    assert done.status == 0, done.err
    assert re.search(r"^ *bleu +\d+\.\d\d *$", done.out, re.M)
    assert re.search(r"^ *word error rate +\d+\.\d% *$", done.out, re.M)
    message = re.search(r"^bleu  (nrefs:1\|case:mixed\|eff:no\|tok:none\|smooth:exp\|version:[\d.]+)$", done.out, re.M)
    assert message[1] == Bleu(tokenize="none").signature()
    assert done.out.index("word error rate") < done.out.index("bleu  nrefs") < done.out.index("predictions  run/")


def test_json_is_all_that_was_said_in_numbers(run):
    output = scores("run")
    assert list(output["metrics"]) == ["loss", *(name if isinstance(name, str) else "bleu" for name in METRICS)]
    assert output["signatures"] == {"bleu": Bleu(tokenize="none").signature()}
    assert (output["split"], output["examples"], output["hypotheses"], output["buckets"]) == ("test", 6, None, None)
    assert (run / "predictions-test.tsv").read_bytes() == (run / "predictions.tsv").read_bytes()
    results = json.loads((run / "results.json").read_text())
    assert output["metrics"]["loss"] == results["test"]["loss"]
    assert output["metrics"]["exact_match"] == results["test"]["exact_match"]


def test_buckets_hold_every_example_once_and_add_up_to_the_whole(run):
    output = scores("run", "--split", "train", "--buckets", "2,3,9", "--checkpoint", "last")
    rows = output["buckets"]["rows"]
    assert [row["length"] for row in rows] == ["≤ 2", "3", "4–9", "> 9"]
    assert (output["buckets"]["by"], output["buckets"]["unit"]) == ("source", "words")
    assert rows[-1] == {"length": "> 9", "examples": 0, "metrics": {}}
    assert sum(row["examples"] for row in rows) == output["examples"] == 80
    predictions = read_predictions(run / "predictions-train.tsv")
    words = [[len(each.reference.split()) for each in predictions]]
    words += [[n for n in words[0] if low < n <= high] for low, high in ((0, 2), (2, 3), (3, 9))]
    assert [row["examples"] for row in rows[:3]] == [len(part) for part in words[1:]]
    whole = output["metrics"]
    for name, weigh in (
        ("exact_match", len),
        ("word_error_rate", sum),
        ("loss", lambda part: sum(part) + len(part)),  # tokens: a piece for each number, and the end
    ):
        parts = sum(row["metrics"][name] * weigh(part) for row, part in zip(rows, words[1:]))
        assert parts == pytest.approx(whole[name] * weigh(words[0]), rel=1e-5), name
        assert len({row["metrics"][name] for row in rows[:3]}) == (1 if name == "exact_match" else 3)


def test_buckets_without_numbers_are_of_like_size(run):
    output = scores("run", "--split", "train", "--search", "{name: beam, size: 2}", "--buckets")
    sizes = [row["examples"] for row in output["buckets"]["rows"]]
    assert output["buckets"]["by"] == "source"
    assert len(sizes) in (3, 4)  # of the lengths 1 to 4, whose quarters may be alike
    assert sum(sizes) == 80
    assert min(sizes) > 10
    done = call("evaluate", "run", "--buckets", "3")
    assert re.search(r"^ *source words +examples +loss +exact match ", done.out, re.M)
    assert re.search(r"^ *> 3 +\d+ +\d+\.\d{3} +\d+\.\d% ", done.out, re.M)


def test_texts_of_another_system_are_scored_against_the_same_references(run, tmp_path):
    wanted = references(run)
    (tmp_path / "theirs.txt").write_text("\r\n".join(f" {text} " for text in wanted) + "\r\n", "utf-8")
    output = scores("run", "--hypotheses", "theirs.txt")
    assert list(output["metrics"]) == OF_TEXTS
    assert output["metrics"] == {"exact_match": 1, "bleu": pytest.approx(100), "word_error_rate": 0}
    assert output["hypotheses"] == "theirs.txt"
    assert not (run / "predictions-test.tsv").exists()
    (tmp_path / "theirs.txt").write_text("\n".join([*wanted[:-2], "7 7", "", ""]), "utf-8")  # the last one is empty
    done = call("evaluate", "run", "--hypotheses", "theirs.txt", "--buckets", "2")
    assert "run on 6 test examples in theirs.txt\n" in done.out
    assert re.search(r"^ *exact match +66\.7% *$", done.out, re.M)
    assert "loss" not in done.out
    assert re.search(r"^ *> 2 +\d", done.out, re.M)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--buckets", "5,x"],
            "--buckets 5,x: must be ascending lengths such as 5,10,15, or nothing for four of like ",
        ),
        (["--buckets", "5,3"], "--buckets 5,3: must be ascending"),
        (["--buckets", "0,3"], "--buckets 0,3: must be ascending"),
        (
            ["--hypotheses", "six.txt", "--search", "greedy"],
            "--search decodes with the run, but --hypotheses provides",
        ),
        (["--hypotheses", "two.txt"], "two.txt has 2 lines, but the test split has 6 examples; one each"),
        (["--hypotheses", "seven.txt"], "seven.txt has more lines, but the test split has 6 examples; one each"),
        (["--hypotheses", "bytes.txt"], "bytes.txt, line 2: not UTF-8 (byte 0xff at 1)"),
        (["--hypotheses", "absent.txt"], "absent.txt: no such file"),
        (["--test", "beyond"], "--test: 'beyond' is no further test: there are none; add it to `evaluate.tests`"),
        (["--test", "{batch: 0}"], "evaluate.tests.changed.batch"),
        (
            ["--test", "{task: {test_min_lenght: 9}}"],
            "'reverse' has no option 'test_min_lenght'; did you mean 'test_min_leng",
        ),
        (
            ["--test", "{batch: 1}", "--hypotheses", "six.txt"],
            "--test {batch: 1} is of our own engine's batches; leave --hypotheses out",
        ),
    ],
)
def test_what_evaluate_refuses(flags, sentence, run, tmp_path):
    (tmp_path / "six.txt").write_text("1\n" * 6)
    (tmp_path / "seven.txt").write_text("1\n" * 7)
    (tmp_path / "two.txt").write_text("1\n2\n")
    (tmp_path / "bytes.txt").write_bytes(b"1\n\xff\n")
    done = call("evaluate", "run", *flags)
    assert (done.status, "Traceback" in done.err) == (2, False)
    assert sentence in done.err


def test_another_test_is_scored_in_the_words_of_the_recipe(copied, tmp_path):
    plain = copied("plain")
    beyond = {"task": {"test_min_length": 5, "test_max_length": 6}, "batch": 2}
    evaluate = {**yaml_lines.load_file(plain / "recipe.yaml")[0]["evaluate"], "tests": {"beyond": beyond}}
    named_run = copied("named", evaluate=evaluate)
    ours = scores("plain", "--test", "{task: {test_min_length: 5, test_max_length: 6}, batch: 2}")
    named = scores("named", "--test", "beyond")
    assert ours["metrics"] == named["metrics"] != scores("plain")["metrics"]
    assert (named["split"], named["test"]) == ("test@beyond", {"name": "beyond", "max_rows": 2, "padding": 0})
    assert (named["changed_outputs"], named["examples"]) == (0, 6) and named["drift"] < 1e-4
    written = read_predictions(named_run / "predictions-test@beyond.tsv")
    assert written == read_predictions(plain / "predictions-test@changed.tsv")
    assert {len(each.source.split()) for each in written} <= {5, 6}
    wide = call("evaluate", "plain", "--test", "{padding: 9}")
    assert re.search(r"^0 of 6 outputs changed, log-probabilities by up to [\d.e-]+ nats$", wide.out, re.M)
    assert "drift" not in scores("plain", "--test", "{task: {test_min_length: 4}}")
    done = call("evaluate", "named", "--test", "beyondd")
    assert (done.status, "unknown test 'beyondd'; did you mean 'beyond'?" in done.err) == (2, True)
    done = call("evaluate", "named", "--test", "beyond", "--split", "valid")
    assert (done.status, "--test beyond has a split of its own" in done.err) == (2, True)


def test_metrics_that_need_the_model_score_no_texts(copied, tmp_path):
    copied(metrics=["perplexity", "token_error_rate"])
    (tmp_path / "six.txt").write_text("1\n" * 6)
    done = call("evaluate", "run", "--hypotheses", "six.txt")
    assert (done.status, done.err.splitlines()[-1]) == (
        *(2, "Error: run: each of its metrics needs the model; none can score six.txt"),
    )


# -------------------------------------------------------------------------------------------------- compare --bootstrap


@pytest.fixture
def two(copied):
    """Two runs of which the second has more right."""
    for name, right in (("a", 8), ("b", 16)):
        folder = copied(name)
        kept = read_predictions(folder / "predictions.tsv") * 4
        written = [each._replace(hypothesis=each.reference if i < right else "7 7 7 7") for i, each in enumerate(kept)]
        write_predictions(folder / "predictions.tsv", written)
    return "a", "b"


def test_bootstrap_takes_the_predictions_of_a_further_test(two, tmp_path):
    for name in two:
        rows = read_predictions(tmp_path / name / "predictions.tsv")[:12]
        write_predictions(tmp_path / name / "predictions@beyond.tsv", rows)
    options = ["--bootstrap", "--draws", "200", "--metric", "exact_match@beyond", "--json"]
    done = call("compare", *two, *options)
    assert done.status == 0, done.err
    (result,) = json.loads(done.out)["metrics"]
    assert (result["metric"], result["baseline"], result["other"]) == ("exact_match@beyond", 8 / 12, 1.0)
    done = call("compare", *two, "--bootstrap", "--metric", "exact_match@byond")
    assert (done.status, "byond" in done.err) == (2, True)


def test_bootstrap_says_whether_the_test_set_tells_two_runs_apart(two, tmp_path):
    done = call("compare", *two, "--bootstrap", "--draws", "2000", "--out", "out")
    assert done.status == 0, done.err
    assert done.out.startswith("A  a\nB  b\n24 test examples\n")
    assert re.search(
        r"exact match +33\.3% +66\.7% +\+33\.3 points +\+16\.7 to \+50\.0 +0\.00\d\d  2,000  better",
        done.out,
    )
    assert re.search(r"word error rate .* −\d+\.\d points +−\d+\.\d to −\d+\.\d .* better", done.out)
    assert "token error rate" not in done.out
    assert f"bleu  {Bleu(tokenize='none').signature()}\n" in done.out
    assert "not the chance in training" in " ".join(done.out.split())
    output = json.loads((tmp_path / "out" / "bootstrap.json").read_text())
    assert (output["baseline"], output["other"], output["examples"]) == ("a", "b", 24)
    assert [each["metric"] for each in output["metrics"]] == OF_TEXTS
    (first, *_) = output["metrics"]
    assert (first["draws"], first["difference"], first["verdict"]) == (2000, pytest.approx(1 / 3), "better")
    assert call("compare", *two, "--bootstrap", "--draws", "2000", "--out", "out").out == done.out


def test_bootstrap_of_a_chosen_metric(two):
    done = call("compare", *two, "--bootstrap", "--draws", "50", "--metric", "bleu")
    assert "|tok:none|" in done.out  # with the recipe's options
    assert "exact match" not in done.out
    done = call("compare", *two, "--bootstrap", "--draws", "50", "--metric", "{name: chrf, word_order: 2}")
    assert re.search(r"^chrf  nrefs:1\|.*\|nw:2\|", done.out, re.M)
    done = call("compare", "a", "a", "--bootstrap", "--draws", "50", "--metric", "exact_match")
    assert re.search(r"33\.3%  33\.3%  \+0\.0 points  \+0\.0 to \+0\.0  1\.0000 +50  equal", done.out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a", "--bootstrap"], "--bootstrap takes two runs, RUN_A RUN_B, and no --baseline: that is the first"),
        (["a", "b", "--bootstrap", "--baseline", "a"], "--bootstrap takes two runs"),
        (["a", "b", "--draws", "9"], "--draws goes with --bootstrap"),
        (["a", "b", "--bootstrap", "--draws", "0"], "Invalid value for '--draws'"),
        (["a", "b", "--bootstrap", "--metric", "blue"], "unknown metric 'blue'; did you mean 'bleu'?"),
        (["a", "b", "--bootstrap", "--metric", "{name: bleu, tokenize: 13b}"], "'13b'; did you mean '13a'?"),
        (["a", "b", "--bootstrap", "--metric", "token_error_rate"],
         "token_error_rate: computed from the model or its pieces, but predictions.tsv holds texts; take --metric exact_match, "
         "bleu"),
        (["a", "d", "--bootstrap"], "a has 24 predictions and d has 6: not the same test set"),
        (["a", "e", "--bootstrap"], "predictions.tsv: no predictions can be read here"),
        (["a", "nowhere", "--bootstrap"], "nowhere: no such folder; `compare` takes the folders of finished runs"),
    ],
)  # fmt: skip
def test_what_bootstrap_refuses(arguments, sentence, two, copied):
    copied("d")
    (copied("e") / "predictions.tsv").unlink()
    done = call("compare", *arguments)
    assert (done.status, "Traceback" in done.err) == (2, False)
    assert sentence in done.err


# ----------------------------------------------------------------------------------------------------------------- run


def test_a_training_that_bleu_decides_shows_it_with_two_decimals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = ["evaluate.metrics=[exact_match, {name: bleu, tokenize: none}]", "evaluate.best=bleu"]
    done = call("run", "reverse", *TINY, *chosen, "--out", "out")
    assert done.status == 0, done.err
    assert re.search(r"step +4  valid  loss \d+\.\d{3}  bleu \d+\.\d\d  exact_match \d+\.\d%$", done.err, re.M)


# ----------------------------------------------------------------------------------------------------- where things go


def test_scores_are_printed_before_anything_is_written_and_a_folder_that_cannot_be_costs_none(run, tmp_path):
    """The file's place is taken by a folder: so it fails for a superuser too, whom no permission stops."""
    (run / "predictions-test.tsv").mkdir()
    done = call("evaluate", "run")
    assert done.status == 0, done.err
    assert re.search(r"^loss +\d", done.out, re.M)
    assert "predictions are not written: " in done.err and "--out FILE writes them elsewhere" in " ".join(
        done.err.split()
    )
    assert scores("run")["predictions"] is None


def test_predictions_go_to_out_and_the_run_stays_as_it_is(run, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    done = call("evaluate", "run", "--out", "mine.tsv")
    assert done.status == 0, done.err
    assert "predictions  mine.tsv" in done.out
    assert [each.reference for each in read_predictions(tmp_path / "mine.tsv")] == references(run)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    done = call("evaluate", "run", "--out", "no/such/folder.tsv")
    assert (done.status, "--out no/such/folder.tsv: no file can be written there" in done.err) == (2, True)


def test_csv_has_a_row_of_all_examples_and_one_a_bucket(run):
    done = call("evaluate", "run", "--buckets", "5", "--csv")
    assert done.status == 0, done.err
    all_examples, *buckets = csv.DictReader(io.StringIO(done.out))
    expected = scores("run", "--buckets", "5")
    assert {name: float(all_examples[name]) for name in expected["metrics"]} == expected["metrics"]
    assert [row["length"] for row in buckets] == [row["length"] for row in expected["buckets"]["rows"]]
    assert sum(int(row["examples"]) for row in buckets) == int(all_examples["examples"])
