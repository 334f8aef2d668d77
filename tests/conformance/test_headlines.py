"""What a report says of a mistake: the first line names the cause, and a formula that the zoo has is recognized."""

import numpy as np
import pytest
from catalogue import FORMULAS, HEADLINES, Edited, build, report, source

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm.testing import FAIL, INFO, PASS, SKIP, with_class
from paddle_tfm.testing.reference.compared import Reference
from paddle_tfm.testing.reference.explained import explained

pytestmark = pytest.mark.conformance
KNOWN = frozenset({"known_formula"})
MISSED = "transformer: heads taken apart by a view"  # told as a missing mask
SAMPLE = (
    "heads put together by a view, and no scale",
    "divided by the reciprocal root",
    "no residual, and a dropout that never ends",
)


def known(text, of):
    return report(text, of, KNOWN)["known_formula"]


def marks(bug):
    if str(bug) == MISSED:
        return [
            pytest.mark.exhaustive,
            pytest.mark.xfail(reason="after two layers each position reacts to each", strict=True),
        ]
    return [] if bug.name in SAMPLE else [pytest.mark.exhaustive]


@pytest.mark.parametrize("bug", [pytest.param(bug, id=str(bug), marks=marks(bug)) for bug in HEADLINES])
def test_the_first_line_names_the_cause(bug: Edited):
    assert bug.says in report(bug.source(), bug.of).most_likely


@pytest.mark.parametrize("bug", FORMULAS, ids=str)
def test_a_formula_that_is_nearly_a_known_one_is_told_apart_and_is_no_failure(bug: Edited):
    outcome = known(bug.source(), bug.of)
    assert outcome.status == INFO
    assert f"`{bug.known}`" in outcome.detail and bug.says in outcome.detail, outcome.detail


@pytest.mark.parametrize(
    "of, name",
    [
        ("known_formulas:RootMeanSquare", "rms"),
        ("known_formulas:GatedNetwork", "swiglu"),
        ("alibi", "alibi"),
        ("known_formulas:Buckets", "t5"),
        ("known_formulas:Turned", "rotary"),
        ("known_formulas:Grouped", "grouped_query"),
        ("known_formulas:CosineScores", "cosine"),
        ("known_formulas:Gaussian", "gelu"),  # by tanh
        ("ordinary_position", "sinusoidal"),  # in float32
        ("ordinary_norm", "layer"),
        ("ordinary_feed_forward", "swiglu"),
        ("attention", "multihead"),
        ("pre", "pre"),
        ("schedule", "inverse_sqrt"),
    ],
)
def test_a_known_formula_under_other_names_is_recognized(of, name):
    outcome = known(source(of), of)
    assert outcome.detail.startswith(f"agrees with `{name}` (arXiv:"), outcome.detail


def test_what_takes_float32_alone_is_no_failure():
    of = "known_formulas:RootMeanSquare"
    text = source(of).replace(
        "        size = paddle", "        assert x.dtype == paddle.float32, 'only float32'\n        size = paddle"
    )
    outcome = known(text, of)
    assert outcome.status == SKIP and "AssertionError: only float32" in outcome.detail


def test_a_formula_of_its_own_is_like_none():
    outcome = known(source("position_variants"), "position_variants:TwoDigits")
    assert outcome.status == SKIP and "like none of the" in outcome.detail


@pytest.mark.parametrize("exponent, status", [("", PASS), ("2.0 * ", FAIL)])
def test_an_installed_component_is_a_reference(exponent, status):
    text = source("rotary").replace("10000.0 ** (-paddle", f"10000.0 ** (-{exponent}paddle")
    registry = create_registry()
    outcome = Reference("rotary", *with_class(registry, build(text, "rotary")), {}, registry).outcome()
    assert outcome.status == status, outcome.detail
    assert ("the same: channels 0, 1 of 4" in outcome.detail) == (status == FAIL)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("rotaty", "or what is installed; did you mean 'rotary'"),
        ("learned", "cannot be compared with position learned: their parameters do not have the same shapes"),
    ],
)
def test_a_reference_that_is_no_component_or_has_other_parameters_is_one_sentence(text, sentence):
    registry = create_registry()
    with pytest.raises(UserError, match=sentence):
        Reference(text, *with_class(registry, build(source("rotary"), "rotary")), {}, registry)


def test_a_factor_of_about_one_is_told_in_all_its_digits_and_explains_no_other_difference():
    expected = np.random.default_rng(0).normal(size=[2, 3, 4])
    everything = np.ones(expected.shape, bool)
    assert "it is 1.00002 times the reference" in explained(expected * 1.00002, expected, everything)
    other = expected + 5e-6 * np.random.default_rng(1).normal(size=expected.shape)
    assert explained(other, expected, everything).startswith("another formula")
