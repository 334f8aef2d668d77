"""`evaluate.tests` of a recipe: what is wrong with one, before anything is trained, and what it changes."""

import pytest
from recipe_text import load_text, problems_of

from paddle_tfm import units
from paddle_tfm.recipe.differences import with_defaults
from paddle_tfm.recipe.loading import load
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.recipe.sections.further_tests import FurtherTest, changed_task, texts_key
from paddle_tfm.recipe.sections.trials import planned
from paddle_tfm.sweep.check import check

START = "base: reverse.yaml\nvariants: {a: {}, b: {model.norm: rms}}\n"
TESTS = "evaluate:\n  tests:\n    beyond: {task: {test_min_length: 13, test_max_length: 14}}\n    alone: {batch: 1}\n"
CLAIM = "says: x, source: of our own, variant: a, at_most: 1"


@pytest.mark.parametrize(
    "test, path, sentence",
    [
        ("one: {bacth: 1}", "one.bacth", "unknown key 'bacth'; did you mean 'batch'?"),
        ("one: {batch: 0}", "one.batch", "must be greater than 0 or null, but is 0"),
        ("one: {batch: true}", "one.batch", "must be a whole number or null, but is True"),
        ("one: {padding: -1}", "one.padding", "must be greater than or equal to 0"),
        ("one: {split: tests}", "one.split", "must be 'train', 'valid' or 'test', but is 'tests'"),
        ("one: {}", "one", "is the run's own test over again; set `task`, `split`, `batch`, `padding` or"),
        ("one: 3", "one", "must be a mapping"),
        ("test: {batch: 1}", "test", "'test' is the name of a split; choose another"),
        ("a b: {batch: 1}", "a b", "must be called by letters, digits, `_` and `-`"),
        ("one: {task: {test_min_lenght: 3}}", "one.task.test_min_lenght", "did you mean 'test_min_length'?"),
        ("one: {task: {test_min_length: x}}", "one.task.test_min_length", "must be a valid integer or null, but is"),
        (
            "one: {task: {test_min_length: 15}}",
            "one.task",
            "'reverse' refuses: `test_min_length` must not be above `test_max_length`",
        ),
        ("one: {task: revers}", "one.task", "unknown task 'revers'; did you mean 'reverse'?"),
        ("one: {task: [3]}", "one.task", "must be a name or {name: …, options…}"),
    ],
)
def test_a_test_that_cannot_be_is_refused_with_its_line(test, path, sentence, tmp_path, registry):
    (problem,) = problems_of(load_text(tmp_path, START + f"evaluate:\n  tests:\n    {test}\n"), registry)
    assert problem[:2] == (5, f"evaluate.tests.{path}") and sentence in problem[2]


@pytest.mark.parametrize(
    "model, sentence",
    [
        ("position: learned", "position 'learned' (model.position) knows positions below model.max_length=256 only"),
        ("position: {name: chain, parts: [alibi, learned]}", "position 'learned' (model.position.parts[1]) knows"),
        ("attention: {encoder: synthesizer}", "attention 'synthesizer' (model.attention.encoder) knows"),
        ("norm: {encoder: batch_per_position, decoder: layer}", "norm 'batch_per_position' (model.norm.encoder) knows"),
    ],
)
def test_longer_texts_need_encodings_that_know_positions_beyond(model, sentence, tmp_path, registry):
    def recipe(most):
        text = START.replace("a: {}", "a: {model.position: alibi}")
        return load_text(tmp_path, f"{text}model: {{{model}}}\nevaluate: {{tests: {{far: {{max_length: {most}}}}}}}\n")

    found = problems_of(recipe(257), registry)
    assert {problem[:2] for problem in found} == {(4, "evaluate.tests.far.max_length")}
    assert any(sentence in text for _, _, text in found)
    assert check(recipe(256), registry)


def test_what_is_wrong_with_the_task_is_said_once(tmp_path, registry):
    wrong = "task: {name: reverse, symbols: 10, min_lenght: 3}\n"
    assert len(problems_of(load_text(tmp_path, START + wrong + TESTS), registry)) == 1
    refused = "task: {name: reverse, min_length: 9, max_length: 3}\n" + TESTS
    (problem,) = problems_of(load_text(tmp_path, START + refused), registry)
    assert problem[:2] == (3, "task")


@pytest.mark.parametrize(
    "metric, sentence",
    [
        ("exact_match@beyon", "unknown test 'beyon'; did you mean 'beyond'? Known: alone, beyond"),
        ("exact_mach@beyond", "unknown metric 'exact_mach'; did you mean 'exact_match'?"),
        ("gradient_norm@beyond", "unknown metric 'gradient_norm'"),
    ],
)
def test_a_claim_about_a_test_that_is_not_there_is_refused(metric, sentence, tmp_path, registry):
    text = f"{TESTS}claims:\n  one: {{{CLAIM}, metric: {metric}}}\n"
    (problem,) = problems_of(load_text(tmp_path, START + text), registry)
    assert problem[:2] == (8, "claims.one.metric") and sentence in problem[2]


def test_a_claim_about_a_further_test_is_sound(tmp_path, registry):
    text = f"{TESTS}claims:\n  one: {{{CLAIM}, metric: loss@beyond}}\n  two: {{{CLAIM}, metric: exact_match@alone}}\n"
    assert len(check(load_text(tmp_path, START + text), registry)) == 2
    (problem,) = problems_of(
        load_text(tmp_path, START + f"claims:\n  one: {{{CLAIM}, metric: loss@beyond}}\n"), registry
    )
    assert problem[2] == "'beyond' is no further test: there are none; add it to `evaluate.tests`"
    split = f"{TESTS}claims:\n  one: {{{CLAIM}, metric: loss@beyond, split: valid}}\n"
    (problem,) = problems_of(load_text(tmp_path, START + split), registry)
    assert problem[1] == "claims.one.split" and "`loss@beyond` says already what it is of" in problem[2]


def test_no_checkpoint_is_chosen_by_a_test(tmp_path, registry):
    (problem,) = problems_of(load_text(tmp_path, START + f"{TESTS}  best: exact_match@beyond\n"), registry)
    assert problem[:2] == (7, "evaluate.best")
    assert "'exact_match@beyond' would choose a checkpoint by a test" in problem[2]
    own = (
        "evaluate: {best: exact_match@own, tests: {own: {split: valid, task: {min_length: 6}, while_training: true}}}\n"
    )
    assert check(load_text(tmp_path, START + own), registry)
    (problem,) = problems_of(load_text(tmp_path, START + own.replace("@own", "@onw")), registry)
    assert "unknown test 'onw'; did you mean 'own'?" in problem[2]


def test_a_test_has_the_options_of_the_runs_task_but_for_its_own(tmp_path, registry):
    run = load_text(tmp_path, START + TESTS).runs()[0]
    plan = plan_run(run, registry)
    ours, theirs = (plan.components[path].options for path in ("task", "evaluate.tests.beyond.task"))
    assert theirs == {**ours, "test_min_length": 13, "test_max_length": 14}
    assert changed_task("copy", {"symbols": 3}) == {"name": "copy", "symbols": 3}
    assert changed_task({"name": "copy", "symbols": 3}, {"name": "reverse"}) == {"name": "reverse"}
    assert changed_task({"name": "copy", "symbols": 3}, "dates") == "dates"
    whole = with_defaults(run.data, registry)
    assert whole["evaluate"]["tests"]["beyond"]["task"]["test_max_length"] == 14
    assert whole["evaluate"]["tests"]["beyond"]["task"]["data_seed"] == 1
    assert run.data["evaluate"]["tests"]["beyond"]["task"] == {"test_min_length": 13, "test_max_length": 14}


def test_a_variant_may_be_tested_otherwise(tmp_path, registry):
    text = TESTS.replace("alone: {batch: 1}", "alone: {batch: 2}")
    file = tmp_path / "mine.yaml"
    file.write_text(START.replace("b: {model.norm: rms}", "b: {evaluate.tests.alone.batch: 1}") + text, "utf-8")
    recipe = load(str(file))
    runs = {run.variant: run for run in recipe.runs()}
    assert [runs[name].settings.evaluate.tests["alone"].batch for name in ("a", "b")] == [2, 1]
    assert texts_key(runs["a"].data) == texts_key(runs["b"].data)  # batches are no texts
    assert texts_key(runs["a"].data) != texts_key({"task": runs["a"].data["task"]})


def test_trials_have_no_further_tests_and_what_is_reported_has(tmp_path, registry):
    tune = "tune: {space: {train.schedule.peak: [1.0e-3, 2.0e-3]}, trials: 2}\n"
    runs = planned(load_text(tmp_path, START + TESTS + tune))
    trials = [run for run in runs if "trial" in run.name]
    assert 0 < len(trials) < len(runs)
    for run in runs:
        assert list(run.settings.evaluate.tests) == ([] if run in trials else ["beyond", "alone"])
        assert ("tests" in run.data["evaluate"]) == (run not in trials)


def test_names_of_metrics():
    assert units.metric_name("exact_match@in_domain") == "exact match@in_domain"
    assert units.metric_and_test("exact_match@in_domain") == ("exact_match", "in_domain")
    assert units.metric_and_test("loss") == ("loss", "")
    assert [FurtherTest(task={"a": 1}).texts("x"), FurtherTest(split="valid").texts("x")] == ["test@x", "valid"]
