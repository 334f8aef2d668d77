"""Scores from 0 to 100 in a comparison: two decimals, no %, and beside them what others need to compare theirs."""

import json

import pytest

from paddle_tfm import create_registry
from paddle_tfm.comparison.report.report import Report, markdown
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.errors import UserError

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


def finish(root, variant, seed, bleu, **more):
    folder = root / variant / f"seed-{seed}"
    folder.mkdir(parents=True)
    results = {
        "recipe": "multi30k",
        "variant": variant,
        "seed": seed,
        "steps": 9,
        "parameters": 7,
        "tokens": 8,
        "seconds": 1.0,
        "tokens_per_second": 8.0,
        "best_step": 9,
        "dropped": {},
        "diverged": None,
        "directions": {"bleu": True},
        "units": {"bleu": "points"},
        "signatures": {"bleu": SIGNATURE},
        "valid": {},
        "test": {"bleu": bleu},
    } | more
    (folder / "results.json").write_text(json.dumps(results), "utf-8")


def table(root):
    for seed, value in enumerate((30.0, 31.0, 32.0), 1):
        finish(root, "post", seed, value)
        finish(root, "pre", seed, value + 4.21375 + seed / 100)
    return compare(collect([root]), "multi30k", root, "bleu", "post")


def test_the_signature_is_in_every_form_of_the_report(tmp_path):
    comparison = table(tmp_path)
    assert comparison.data()["signatures"] == {"bleu": SIGNATURE}
    assert f"- bleu: {SIGNATURE}".replace("|", r"\|") in markdown(comparison)
    paths = Report(comparison, create_registry(), pytest.fail).write()
    assert json.loads(paths["json"].read_text("utf-8"))["signatures"] == {"bleu": SIGNATURE}
    assert f"<p>bleu: {SIGNATURE}</p>" in paths["page"].read_text("utf-8")


def test_runs_that_were_scored_in_other_ways_are_reported(tmp_path):
    finish(tmp_path, "pre", 1, 30.0)
    finish(tmp_path, "post", 1, 31.0, signatures={"bleu": "tok:zh"})
    sentence = compare(collect([tmp_path]), "multi30k", tmp_path, "bleu").signatures["bleu"]
    assert sentence == f"not comparable between these runs: tok:zh and {SIGNATURE}"


@pytest.mark.parametrize("key", ["recipe", "seconds", "directions", "units", "signatures"])
def test_results_that_do_not_say_how_they_are_shown_are_refused(tmp_path, key):
    finish(tmp_path, "pre", 1, 30.0)
    file = tmp_path / "pre" / "seed-1" / "results.json"
    results = json.loads(file.read_text("utf-8"))
    del results[key]
    file.write_text(json.dumps(results), "utf-8")
    with pytest.raises(UserError, match=f"results.json: damaged: it lacks {key}"):
        collect([tmp_path])
