"""Likelihood and prediction do not depend on how examples are batched; tasks, searches and metrics that do not keep
their promise are told in a sentence."""

import time

import numpy as np
import pytest

from paddle_tfm import UserError, create_registry, hookimpl, load_recipe, processes
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.protocols import Example, Hypothesis, Metric, Search, Task
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.train.evaluate import DecodingTime, likelihood, log_probs, predict


def test_likelihood_does_not_depend_on_batches(make_run):
    run = make_run()
    run.model.eval()
    examples = run.encoded["valid"]
    small, large = likelihood(run.model, examples, max_tokens=8), likelihood(run.model, examples, max_tokens=4096)
    assert small.negative_log == pytest.approx(large.negative_log, rel=1e-5)
    assert small[1:] == large[1:]
    assert large.tokens == sum(len(example.target) for example in examples)


def test_likelihood_does_not_depend_on_processes(make_run, monkeypatch):
    run = make_run()
    run.model.eval()
    monkeypatch.setattr(processes, "MIN_BATCH_TOKENS", 8)
    output = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        output.append(likelihood(run.model, run.encoded["valid"], max_tokens=64))
    assert output[1].negative_log == pytest.approx(output[0].negative_log, rel=1e-5)
    assert output[1][1:] == output[0][1:]


def test_log_probs_are_those_of_each_example_in_their_order(make_run):
    run = make_run()
    run.model.train()
    examples = run.encoded["valid"]
    alone = [-likelihood(run.model, [example]).negative_log for example in examples]
    assert len({round(each, 3) for each in alone}) > 1
    for max_tokens in (8, 4096):
        np.testing.assert_allclose(log_probs(run.model, examples, max_tokens), alone, rtol=1e-5)
    assert run.model.training


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_predictions_do_not_depend_on_neighbours_or_order(make_run, registry, norm):
    run = make_run(f"model.norm={norm}")
    run.model.eval()
    search = registry.build("search", {"name": "beam", "size": 3})
    examples = run.encoded["test"]
    together = predict(run.model, run.codec, examples, search)
    alone = [predict(run.model, run.codec, [example], search)[0] for example in examples]
    assert [p.hypothesis for p in together] == [p.hypothesis for p in alone]
    np.testing.assert_allclose([p.score for p in together], [p.score for p in alone], rtol=1e-4, atol=1e-4)
    assert [p.source for p in together] == [example.example.source for example in examples]


@pytest.mark.parametrize("output", [None, [], [[]], [[Hypothesis([4], -1.0)], []]])
def test_a_search_without_a_hypothesis_is_named(make_run, output):
    class Mute(Search):
        def run(self, decoding):
            return output

    run = make_run()
    with pytest.raises(
        UserError, match="search Mute: `run` must return at least one hypothesis for each of 2 sentences"
    ):
        predict(run.model, run.codec, run.encoded["test"][:2], Mute())


class Other(Metric):
    """Nothing much."""

    def compute(self, predictions, likelihood):
        return 1.0


class Given(Task):
    """What the test says."""

    splits = {}

    def examples(self, split):
        return self.splits[split]


class Plugin:
    @hookimpl
    def register_metrics(self):
        return {"loss": Other, "other": Other}

    @hookimpl
    def register_tasks(self):
        return {"given": Given}


@pytest.fixture
def with_plugin():
    registry = create_registry()
    registry.plugins.manager.register(Plugin(), name="mine")
    return Registry(registry.plugins)


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        ("[exact_match, loss]", r"evaluate.metrics\[1\] +'loss' is the name of what is always measured"),
        ("[exact_match, other, {name: other}]", r"evaluate.metrics\[2\] +'other' is here twice"),
    ],
)
def test_metrics_have_names_of_their_own(with_plugin, metrics, sentence):
    plan = plan_run(load_recipe("base", [f"evaluate.metrics={metrics}"]).runs()[0], with_plugin)
    with pytest.raises(UserError, match=sentence):
        plan.require_sound("base")


PAIR = [Example("a", "b")]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"train": []}, "the split 'train' holds no example"),
        ({"valid": iter(())}, "the split 'valid' holds no example"),
        ({"test": None}, "the split 'test' has None"),
        ({"train": [*PAIR, ("a", "b")]}, r"the split 'train' has \('a', 'b'\)"),
        ({"test": [Example("a", "b", (1,))]}, r"the split 'test' has Example.*\(1,\)"),
        ({"train": [Example("a", 7)]}, "the split 'train' has Example.*7"),
        ({"test": [Example("a", "b", others=(7,))]}, "the split 'test' has Example.*7"),
        (
            {"train": [*PAIR, Example("a", "b", others=("c",))]},
            "example 2 of the split 'train' has 2 references, but must have 1: a training pair has one",
        ),
        (
            {"test": [Example("a", "b", others=("c", "d")), *PAIR]},
            "example 2 of the split 'test' has 1 references, but must have 3: .* those of a test have equally many",
        ),
    ],
)
def test_a_task_that_gives_no_examples_is_named(with_plugin, monkeypatch, change, sentence):
    monkeypatch.setattr(Given, "splits", {"train": PAIR, "valid": PAIR, "test": PAIR} | change)
    plan = plan_run(load_recipe("base", ["task=given"]).runs()[0], with_plugin)
    with pytest.raises(UserError, match=f"^task 'given': .*{sentence}"):
        load_corpus(plan)


def test_a_task_needs_no_test_split(with_plugin, monkeypatch):
    monkeypatch.setattr(Given, "splits", {"train": PAIR, "valid": iter(PAIR), "test": []})
    plan = plan_run(load_recipe("base", ["task=given"]).runs()[0], with_plugin)
    splits = load_corpus(plan).splits
    assert {name: list(texts) for name, texts in splits.items()} == {"train": PAIR, "valid": PAIR, "test": []}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_ratio": -0.5}, "`max_ratio` must be in \\[0, inf\\), but is -0.5"),
        ({"max_ratio": float("inf")}, "max_ratio  must be a finite number, but is inf"),
        ({"max_extra": -1}, "`max_extra` must not be negative, but is -1"),
        ({"max_ratio": 0.0, "max_extra": 0}, "must not both be 0"),
    ],
)
def test_bounds_of_a_search(registry, options, sentence):
    with pytest.raises(UserError, match=sentence):
        registry.build("search", {"name": "beam", **options})
    assert registry.build("search", {"name": "beam", "max_ratio": 0.0}).limit(9) == 20
    assert registry.build("search", {"name": "beam", "max_extra": 0}).limit(9) == 18


def test_a_search_is_timed_with_all_that_it_wrote():
    def decode(*examples, wanted):
        time.sleep(0.02)
        return [[Hypothesis([7] * length, -1.0), Hypothesis([7] * 9, -2.0)][:wanted] for length in examples]

    clock = DecodingTime()
    decoded = [clock.of(decode)(3, 0, wanted=2), clock.of(decode)(4, wanted=1)]
    assert [len(each) for each in decoded] == [2, 1]
    assert (clock.sentences, clock.tokens) == (3, 4 + 1 + 5)  # the best of each, and its end
    assert 0.04 <= clock.seconds < 5
