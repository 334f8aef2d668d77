"""The kit proves itself: it passes what is right, and fails each wrong class by the check that names what is wrong."""

from pathlib import Path

import pytest
from catalogue import (
    AS_KIND,
    HEADLINES,
    RIGHT,
    UNREAD,
    WRONG,
    WRONG_IN_A_FILE,
    Edited,
    class_name,
    edited,
    examined,
    one_of_each_table,
    report,
    right_classes,
    source,
)

from paddle_tfm import place
from paddle_tfm.testing import FAIL, INFO, PASS
from paddle_tfm.testing.catalogue import CHECKS
from paddle_tfm.testing.module_file import load

pytestmark = pytest.mark.conformance
INVARIANTS = frozenset(check.name for kind in CHECKS for check in CHECKS[kind] if not check.information)
RIGHT_CLASSES = right_classes()


def exhaustive_but(sample, cases):
    """The cases, those that are not in the sample tried with `-m conformance` alone."""
    return [pytest.param(case, marks=() if case in sample else pytest.mark.exhaustive) for case in cases]


RIGHT_OF_EACH_TABLE = one_of_each_table(RIGHT)
IN_CI = {*(of for of in RIGHT_CLASSES if of in AS_KIND), "batch_norm"}  # ordinary layers, and one with buffers


def report_of_a_file(path: Path, text: str, of: str, check: str):
    """The outcome of a check of the class in a source that stands in a file."""
    path.write_text(text, encoding="utf-8")
    return examined(getattr(load(path), class_name(of)), frozenset({check}))[check]


@pytest.mark.parametrize("of", exhaustive_but(IN_CI, RIGHT_CLASSES))
def test_a_right_class_passes(of):
    assert [str(outcome) for outcome in report(source(of), of, INVARIANTS).failures] == []


@pytest.mark.parametrize("right", exhaustive_but(RIGHT_OF_EACH_TABLE, RIGHT), ids=str)
def test_an_edit_that_is_right_passes(right: Edited):
    assert [str(outcome) for outcome in report(right.source(), right.of, INVARIANTS).failures] == []


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_wrong_fails_by_the_check_that_names_it(wrong: Edited):
    assert wrong.lines() <= 3
    outcome = report(wrong.source(), wrong.of, frozenset({wrong.caught_by}))[wrong.caught_by]
    assert outcome.status == FAIL, f"{wrong.caught_by}: {outcome.status} {outcome.detail}"
    assert outcome.detail
    assert "NameError" not in outcome.detail  # what is broken is the component, not the edit


@pytest.mark.parametrize("wrong", UNREAD, ids=str)
def test_an_option_that_no_line_reads_fails_and_one_that_acts_nowhere_is_a_remark(wrong: Edited, tmp_path):
    """Whether a line reads it, the file says."""
    assert wrong.lines() <= 3
    right = report(source(wrong.of), wrong.of, frozenset({"options"}))["options"]
    idle = report_of_a_file(tmp_path / "idle.py", wrong.source(), wrong.of, "options")
    assert (right.status, "is it read?" in right.detail) == (INFO, False)
    assert f"`{wrong.unread}` (" in idle.detail
    assert idle.status == (INFO if "another name" in wrong.name else FAIL)
    assert ("is it read?" if idle.status == INFO else "no line of the class reads it") in idle.detail


@pytest.mark.parametrize("wrong", WRONG_IN_A_FILE, ids=str)
def test_what_goes_by_the_order_of_a_set_fails(wrong: Edited, tmp_path):
    assert wrong.lines() <= 3
    was, becomes = (
        report_of_a_file(tmp_path / f"{name}.py", text, wrong.of, wrong.caught_by)
        for name, text in (("was", source(wrong.of)), ("becomes", wrong.source()))
    )
    assert was.status == PASS
    assert becomes.status == FAIL and "order of another process" in becomes.detail


def test_texts_that_a_whole_model_does_not_take_are_in_the_notes():
    def notes(most: int) -> tuple[str, ...]:
        refusing = f"assert ids.shape[1] <= {most}, 'too long'\n        return x + self.positions(ids.shape[1])"
        text = source("transformer").replace("return x + self.positions(ids.shape[1])", refusing)
        return report(text, "transformer", frozenset({"attends"})).notes

    assert notes(100) == ()
    assert notes(64) == ("not with texts of 72 words, which it does not take: AssertionError: too long",)


def test_where_norms_stand_in_a_whole_model_is_said():
    pre = next(edit for edit in RIGHT if edit.of == "transformer" and edit.name.startswith("pre-norm"))
    for text, kind in ((source("transformer"), "post-norm"), (pre.source(), "pre-norm")):
        said = report(text, "transformer", frozenset({"own_norms"}))["own_norms"]
        assert (said.status, said.detail) == (PASS, f"the encoder: {kind}; the decoder: {kind}")


def test_what_is_paddles_own_is_a_remark():
    said = report(source("sharp_and_sparse:SiluGate"), "sharp_and_sparse:SiluGate", frozenset({"extremes"}))["extremes"]
    assert said.status == PASS
    assert ("by Paddle's own F.silu" in said.detail) == place.on_cpu()


def test_the_catalogue_is_as_large_as_it_was():
    assert len(WRONG) >= 540 and len(RIGHT) + len(RIGHT_CLASSES) >= 145
    assert len({str(wrong) for wrong in WRONG}) == len(WRONG)
    assert {of for of in RIGHT_CLASSES if ":" not in of} <= {wrong.of for wrong in [*WRONG, *HEADLINES]}
    assert len([wrong for wrong in WRONG if "/" in wrong.of]) >= 15  # of components that are shipped


@pytest.mark.parametrize("was", ["absent", "x"])
def test_an_edit_finds_its_place_once_or_is_refused(was):
    """Otherwise what is wrong could be right, or wrong twice."""
    assert edited("y = x + x", "y", "z", "an edit") == "z = x + x"
    with pytest.raises(ValueError, match=f"an edit: the source has '{was}' [02] times"):
        edited("y = x + x", was, "z", "an edit")


@pytest.mark.parametrize(
    ("weights", "status"),
    [
        ("F.softmax(scores, -1) * seen\n        weights = weights / weights.sum(-1, keepdim=True)", PASS),
        ("F.softmax(scores + 20.0 * (seen - 1.0), -1)", FAIL),
    ],
)
def test_a_gradient_that_cancels_out_is_told_from_a_small_leak(weights, status):
    """Both leave about 1e-9 of a gradient with respect to later words: in float64 only the leak still does."""
    usual = "weights = F.softmax(scores + mask.dense(scores.dtype), -1)"
    text = source("attention")
    assert usual in text
    text = text.replace(usual, f"seen = mask.allowed().astype(scores.dtype)\n        weights = {weights}")
    assert report(text, "attention", frozenset({"causal"}))["causal"].status == status
