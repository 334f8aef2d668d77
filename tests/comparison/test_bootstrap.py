"""Paired bootstrap resampling against enumeration, the formula of a standard error, and sacreBLEU's own."""

import itertools
import math
import random

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from paddle_tfm import UserError
from paddle_tfm.comparison import bootstrap
from paddle_tfm.comparison.bootstrap import (
    SLOW_DRAWS,
    paired_bootstrap,
    require_same_examples,
    resampled_values,
)
from paddle_tfm.predictions import read_predictions, write_predictions
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm_plugins.metric.bleu import Bleu
from paddle_tfm_plugins.metric.chrf import Chrf
from paddle_tfm_plugins.metric.exact_match import ExactMatch
from paddle_tfm_plugins.metric.word_error_rate import WordErrorRate


def right_or_wrong(marks):
    return [Prediction("", "a", "a" if mark else "b") for mark in marks]


def system(size, quality, seed, corpus=0):
    """Outputs whose every word is right with the probability `quality`, of references that `corpus` draws."""
    words, errors = random.Random(corpus), random.Random(seed)
    output = []
    for _ in range(size):
        reference = [f"w{words.randrange(40)}" for _ in range(words.randrange(6, 16))]
        written = [word if errors.random() < quality else "x" for word in reference]
        output.append(Prediction("", " ".join(reference), " ".join(written)))
    return output


class Slow(Metric):
    """An exact match that is no function of sums, as a user may write one."""

    def compute(self, predictions, likelihood):
        return sum(each.hypothesis == each.reference for each in predictions) / len(predictions)


# --------------------------------------------------------------------------------------------------------- the numbers


def test_p_and_the_interval_are_those_of_all_possible_draws():
    one, two = right_or_wrong([1, 0, 0, 1, 0]), right_or_wrong([1, 1, 0, 1, 1])
    gain = [0, 1, 0, 0, 1]
    exact = np.array([sum(gain[i] for i in draw) / 5 for draw in itertools.product(range(5), repeat=5)])
    output = paired_bootstrap("exact_match", ExactMatch(), one, two, draws=100_000)
    assert output.difference == pytest.approx(0.4)
    assert output.p == pytest.approx(2 * (exact <= 0).mean(), abs=0.006)  # 2 · 0.0778, ± 3.5 standard errors
    assert (output.low, output.high) == tuple(np.quantile(exact, [0.025, 0.975]))
    assert output.verdict == "undetermined"


@pytest.mark.parametrize(
    ("ours", "theirs", "key"), [(Bleu(), sacrebleu.BLEU(), "BLEU"), (Chrf(), sacrebleu.CHRF(), "chrF2")]
)
def test_it_agrees_with_sacrebleu(ours, theirs, key):
    one, two = system(300, 0.7, 1), system(300, 0.71, 2)
    named = [(name, [each.hypothesis for each in run]) for name, run in (("one", one), ("two", two))]
    test = PairedTest(named, {key: theirs}, [[each.reference for each in one]], test_type="bs", n_samples=2000)
    baseline, other = test()[1][key]
    values = resampled_values(ours, (one, two))
    output = paired_bootstrap(key, ours, one, two)
    assert (output.baseline, output.other) == (baseline.score, other.score)
    assert values.mean(0) == pytest.approx([baseline.mean, other.mean], abs=0.15)
    widths = (np.quantile(values, 0.975, 0) - np.quantile(values, 0.025, 0)) / 2
    assert widths == pytest.approx([baseline.ci, other.ci], rel=0.08)
    # sacreBLEU counts the draws whose |difference| lies further above the mean of them than the difference itself: one
    # tail of two where the systems are apart. From our draws that is its p; our own is about twice as much.
    apart = np.abs(values[:, 1] - values[:, 0])
    tail = ((apart - apart.mean() > abs(output.difference)).sum() + 1) / (len(apart) + 1)
    assert 0.001 < tail < 0.5
    assert other.p_value == pytest.approx(tail, abs=5 * math.sqrt(tail / 2000))
    assert output.p / 2 == pytest.approx(tail, rel=0.5)


def test_sums_are_what_scoring_the_drawn_texts_gives():
    one, two = system(40, 0.8, 1), system(40, 0.8, 2)
    for metric in (Bleu(), Chrf(word_order=2), WordErrorRate(), ExactMatch()):
        again = type("Again", (Metric,), {"compute": lambda self, *arguments, of=metric: of.compute(*arguments)})()
        slow = resampled_values(again, (one, two), draws=30)
        assert np.array_equal(resampled_values(metric, (one, two), draws=30), slow)
        assert len(np.unique(slow)) > 5


# ---------------------------------------------------------------------------------------------------------- its promise


def test_the_same_question_has_the_same_answer(monkeypatch):
    one, two = system(60, 0.8, 1), system(60, 0.82, 2)
    first = paired_bootstrap("bleu", Bleu(), one, two, draws=500)
    monkeypatch.setattr(bootstrap, "MAX_COUNTS", 60 * 7)  # seven draws at a time
    assert paired_bootstrap("bleu", Bleu(), one, two, draws=500) == first
    assert first.signature == Bleu().signature()


@pytest.mark.parametrize(("metric", "better"), [(Bleu(), "better"), (WordErrorRate(), "better"), (Slow(), "better")])
def test_the_verdict_is_about_the_second_and_knows_which_way_is_better(metric, better):
    one, two = system(150, 0.8, 1), system(150, 0.95, 2)
    output, back = paired_bootstrap("m", metric, one, two, 300), paired_bootstrap("m", metric, two, one, 300)
    assert (output.verdict, back.verdict) == (better, "worse")
    assert (output.difference, output.p) == (-back.difference, back.p)
    assert (output.low, output.high) == pytest.approx((-back.high, -back.low))
    assert output.low < output.difference < output.high
    assert output.low * output.high > 0


def test_a_p_of_five_percent_is_undetermined():
    differences = np.where(np.arange(999) < 24, -1.0, 1.0)  # p = 2 · (1 + 24) / (1 + 999)
    assert bootstrap.resampled_difference(differences, True)[2:] == (0.05, "undetermined")
    assert bootstrap.resampled_difference(np.where(np.arange(999) < 23, -1.0, 1.0), True)[3] == "better"


def test_a_metric_without_statistics_gets_fewer_draws():
    one, two = right_or_wrong([0, 1] * 20), right_or_wrong([1, 1] * 20)
    assert paired_bootstrap("slow", Slow(), one, two).draws == SLOW_DRAWS
    assert paired_bootstrap("slow", Slow(), one, two, draws=50).draws == 50
    assert paired_bootstrap("exact_match", ExactMatch(), one, two).draws == bootstrap.DRAWS


# ---------------------------------------------------------------------------------------------------------------- files


def test_what_is_read_is_what_was_written(tmp_path):
    written = [
        Prediction("eins  zwei\t", "one \u2028 two\u00a0three", "", score=-1.25),
        Prediction("drei", "three", 'a "quoted" \x0b hypothesis', score=-0.5),
    ]
    write_predictions(tmp_path / "p.tsv", written)
    squeezed = [each._replace(**{n: " ".join(getattr(each, n).split()) for n in each._fields[:3]}) for each in written]
    assert read_predictions(tmp_path / "p.tsv") == squeezed


def test_other_references_are_kept(tmp_path):
    written = [Prediction("x", "a", out, others=("b", "c")) for out in "cd"]
    write_predictions(tmp_path / "p.tsv", written)
    assert read_predictions(tmp_path / "p.tsv") == written
    assert [line[:3] for line in (tmp_path / "p.tsv").read_text().splitlines()[1:]] == ["yes", "no\t"]
    result = paired_bootstrap("bleu", Bleu(), written, written, 10)
    assert result.signature == Bleu().signature(3)


HEAD = "right\tsource\treference\thypothesis\tscore\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", r"p\.tsv: must be a table of right, source, reference, hypothesis, score"),
        (
            f"{HEAD}yes\ta\tb\tb\t-1\nno\ta\tb\n".encode(),
            r"p\.tsv:3: must hold right, source, reference, hypothesis, sco",
        ),
        (f"{HEAD[:-1]}\treference 2\nno\ta\tb\tc\t-1\n".encode(), r"p\.tsv:2: must hold right, .*, reference 2"),
        (b"\xff", r"p\.tsv: no predictions can be read here: .*utf-8"),
        (None, r"p\.tsv: no predictions can be read here: .*No such file"),
    ],
)
def test_a_damaged_file_is_reported(text, sentence, tmp_path):
    if text is not None:
        (tmp_path / "p.tsv").write_bytes(text)
    with pytest.raises(UserError, match=sentence):
        read_predictions(tmp_path / "p.tsv")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"source": "y"},
            r"a and b are not of the same test set: the source of example 2 is 'x' in the one and 'y' in ",
        ),
        ({"reference": "B"}, r"the reference of example 2 is 'b' in the one and 'B' in the other"),
        ({"others": ("B",)}, r"the reference of example 2 is 'b' in the one and 'b \| B' in the other"),
        (None, r"^a has 2 predictions and b has 1: not the same test set$"),
    ],
)
def test_other_test_sets_are_refused(change, sentence):
    one = [Prediction("x", "a", "a"), Prediction("x", "b", "b")]
    two = [one[0], one[1]._replace(hypothesis="c", **change)] if change else one[:1]
    with pytest.raises(UserError, match=sentence):
        require_same_examples(one, two, ("a", "b"))
    require_same_examples(one, [each._replace(hypothesis="z", score=3.0) for each in one], ("a", "b"))
