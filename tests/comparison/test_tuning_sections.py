"""What the report says of tuning: what was chosen, and the verdicts that change without it. Folders as a sweep leaves them; nothing is trained."""

from __future__ import annotations

import json
import math
from statistics import fmean

import pytest
from finished_runs import finished

from paddle_tfm import create_registry
from paddle_tfm.comparison.report import paper
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.section_output import parts
from paddle_tfm.comparison.report.sections.tuning import Tuning, Untuned
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare

HOSTILE = "<u>a_b & 50%"
TRIALS = {"base": [0.2, 0.6, 0.4, None], HOSTILE: [0.7, 0.1, 0.5, 0.3]}
TUNED = {"base": (0.60, 0.61, 0.62), HOSTILE: (0.70, 0.72, 0.71)}
PLAIN = {"base": (0.60, 0.61, 0.62), HOSTILE: (0.50, 0.52, 0.51)}


@pytest.fixture(scope="module")
def registry():
    return create_registry()


def record(stopped=0):
    variants = {}
    for name, scores in TRIALS.items():
        best = scores.index(max(score for score in scores if score is not None))
        trials = [
            {
                "number": i + 1,
                "round": 0,
                "values": {"train.schedule.peak": 0.001 * (i + 1)},
                "score": score,
                "steps": 4,
            }
            | {"stopped": i < stopped and i != best}
            for i, score in enumerate(scores)
        ]
        edge = {"train.schedule.peak": "below"} if best == 0 else {}
        variants[name] = {"chosen": best + 1, "values": trials[best]["values"], "at_edge": edge, "trials": trials}
    spaces = [{"train.schedule.peak": {"log": [0.001, end]}} for end in (0.002, 0.005)]
    return {"metric": "exact_match", "higher_is_better": True, "spaces": spaces, "variants": variants}


@pytest.fixture
def sweep(tmp_path, registry):
    """The facts of a tuned sweep; `untuned`: the scores with the recipe's own values."""

    def make(untuned=None, **options):
        for number, name in enumerate(TUNED):
            for seed in (1, 2, 3):
                finished(tmp_path / f"v{number}/seed-{seed}", name, seed, {"exact_match": TUNED[name][seed - 1]})
                finished(tmp_path / f"tuning/v{number}/trial-0{seed}", name, 0, {"exact_match": 0.99})
                if untuned:
                    finished(
                        tmp_path / f"tuning/v{number}/untuned-seed-{seed}",
                        name,
                        seed,
                        {"exact_match": untuned[name][seed - 1]},
                    )
        (tmp_path / "tuning.json").write_text(json.dumps(record(**options)), "utf-8")
        return Facts(compare(collect([tmp_path]), "r", tmp_path, "exact_match", "base"), registry)

    return make


def test_what_was_chosen_is_said_with_where_it_lies(sweep):
    facts = sweep()
    assert [row.seeds for row in facts.comparison.rows] == [[1, 2, 3], [1, 2, 3]]  # trials are no seeds
    table = Tuning().tables(facts)["tuning"]
    assert table.title == (
        "Chosen on the validation split from train.schedule.peak 0.001 to 0.005 (log); widened from train.schedule.peak "
        "0.001 to 0.002 (log)"
    )
    rows = [line.split(",") for line in table.csv().splitlines()]
    assert rows[0] == ["variant", "train.schedule.peak", "exact_match", "trials", "diverged"]
    assert rows[1:] == [[HOSTILE, "0.001", "0.7", "4", "0"], ["base", "0.002", "0.6", "4", "1"]]
    assert Tuning().text(facts) == [
        f"tuned  {HOSTILE}: train.schedule.peak 0.001 (nothing was tried beyond this train.schedule.peak)",
        "tuned  base: train.schedule.peak 0.002",
    ]
    page = Tuning().html(facts)
    assert "0.001 (outermost)" in page and HOSTILE not in page and "&lt;u&gt;a_b &amp; 50%" in page


def test_a_paper_says_how_the_values_were_chosen(sweep, registry):
    sentence = (
        "Before, 4 trials of each variant, the same for all and with another seed, chose on the validation split from "
        f"train.schedule.peak 0.001 to 0.005 (log): {HOSTILE} train.schedule.peak 0.001; base train.schedule.peak 0.002."
    )
    facts = sweep()
    assert sentence in paper.methods(facts)
    (facts.comparison.folder / "tuning.json").unlink()
    assert sentence not in paper.methods(Facts(facts.comparison, registry))


def test_halved_trials_are_counted(sweep):
    (table,) = Tuning().tables(sweep(stopped=3)).values()
    assert table.csv().splitlines()[1].endswith(",4,0,2")


@pytest.mark.parametrize(("plain", "before"), [(PLAIN, "worse"), (TUNED, "better")])
def test_a_verdict_that_changes_with_tuning_is_flagged(sweep, plain, before):
    facts = sweep(untuned=plain)
    said = Untuned().data(facts)[HOSTILE]
    assert said == {"untuned": before, "tuned": "better", "changes": before != "better", "mean": pytest.approx(fmean(plain[HOSTILE]))}  # fmt: skip
    changes = f"untuned  {HOSTILE} worse, and tuned better: the verdict changes with tuning"
    assert Untuned().text(facts) == [changes if before == "worse" else "untuned  no verdict changes with tuning"]
    assert ("changes with tuning" in Untuned().tables(facts)["untuned"].html()) == (before == "worse")


def test_it_is_left_out_where_nothing_was_tuned_or_the_record_is_damaged(sweep, registry):
    facts = sweep()
    warned = []
    names = [part.name for part in parts(facts, registry, warned.append)]
    assert "tuning" in names and "untuned" not in names and not warned
    file = facts.comparison.folder / "tuning.json"
    whole = record()
    damaged = [{}, {**whole, "variants": {"base": {}}}, {**whole, "variants": 3}, {**whole, "spaces": 5}]
    trials = whole["variants"]["base"] | {"chosen": 9}
    for content in ("", *map(json.dumps, [*damaged, {**whole, "variants": {"base": trials}}])):
        file.write_text(content, "utf-8")
        facts = Facts(facts.comparison, registry)
        names = [part.name for part in parts(facts, registry, warned.append)]
        assert "tuning" not in names and not warned, content
    file.unlink()
    assert not Tuning().applies(facts) and not Untuned().applies(facts)
    assert math.isfinite(facts.comparison.rows[0].standing)
