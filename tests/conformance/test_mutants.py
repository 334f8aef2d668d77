"""The kit proves itself: it passes what is right, and fails each mutant by the check that names its bug."""

import functools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "mutants"))
from edits import edited
from mutants_catalogue import AS_KIND, IDLE, MASK, MUTANTS, OF_A_FILE, RIGHT, TWINS, ZOO, Mutant, build, source

from paddle_tfm import create_registry
from paddle_tfm.testing import FAIL, INFO, PASS, examine, with_class
from paddle_tfm.testing.catalogue import CHECKS
from paddle_tfm.testing.target import examine_class, load

pytestmark = pytest.mark.conformance
INVARIANTS = frozenset(check.name for kind in CHECKS for check in CHECKS[kind] if not check.information)


def report(text: str, twin: str, only: frozenset[str] = frozenset()):
    """The kit's report about the class in a source."""
    cls = build(text, twin)
    if twin in AS_KIND:
        return examine_class(AS_KIND[twin], cls, {}, MASK.get(twin), only=only)
    registry = create_registry()
    return examine(*with_class(registry, cls), registry=registry, only=only)


def report_of_a_file(path: Path, text: str, twin: str, check: str):
    """The outcome of a check of the class in a source that stands in a file."""
    path.write_text(text, encoding="utf-8")
    name = "Twin" if "/" not in twin else create_registry().entry(*twin.split("/")).load().__name__
    registry = create_registry()
    cls = getattr(load(path), name)
    return examine(*with_class(registry, cls), registry=registry, only=frozenset({check}))[check]


def failures(text: str, twin: str) -> list[str]:
    return [str(outcome) for outcome in report(text, twin, INVARIANTS).failures]


@functools.cache
def failures_of_twin(twin: str) -> list[str]:
    return failures(source(twin), twin)


@pytest.mark.parametrize("twin", sorted(path.stem for path in TWINS.glob("*.py")))
def test_the_twin_passes(twin):
    assert failures_of_twin(twin) == []


@pytest.mark.parametrize("variant", RIGHT, ids=str)
def test_a_right_variant_passes(variant):
    assert failures(variant.source(), variant.twin) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_mutant_fails_by_the_check_that_names_its_bug(mutant: Mutant):
    assert mutant.lines() <= 3
    outcome = report(mutant.source(), mutant.twin, frozenset({mutant.caught_by}))[mutant.caught_by]
    assert outcome.status == FAIL, f"{mutant.caught_by}: {outcome.status} {outcome.detail}"
    assert outcome.detail
    assert "NameError" not in outcome.detail  # what is broken is the component, not the mutant


@pytest.mark.parametrize("mutant", IDLE, ids=str)
def test_an_option_that_no_line_reads_fails_and_one_that_acts_nowhere_is_a_remark(mutant: Mutant, tmp_path):
    """Whether a line reads it, the file says."""
    assert mutant.lines() <= 3
    right = report(source(mutant.twin), mutant.twin, frozenset({"options"}))["options"]
    idle = report_of_a_file(tmp_path / "idle.py", mutant.source(), mutant.twin, "options")
    assert (right.status, "is it read?" in right.detail) == (INFO, False)
    assert f"`{IDLE[mutant]}` (" in idle.detail
    assert idle.status == (INFO if "another name" in mutant.name else FAIL)
    assert ("is it read?" if idle.status == INFO else "no line of the class reads it") in idle.detail


@pytest.mark.parametrize("mutant", OF_A_FILE, ids=str)
def test_what_goes_by_the_order_of_a_set_fails(mutant: Mutant, tmp_path):
    assert mutant.lines() <= 3
    right, wrong = (
        report_of_a_file(tmp_path / f"{name}.py", text, mutant.twin, mutant.caught_by)
        for name, text in (("right", source(mutant.twin)), ("wrong", mutant.source()))
    )
    assert right.status == PASS
    assert wrong.status == FAIL and "order of another process" in wrong.detail


def test_texts_that_a_whole_model_does_not_take_are_in_the_notes():
    def notes(most: int) -> tuple[str, ...]:
        refusing = f"assert ids.shape[1] <= {most}, 'too long'\n        return x + self.positions(ids.shape[1])"
        text = source("transformer").replace("return x + self.positions(ids.shape[1])", refusing)
        return report(text, "transformer", frozenset({"attends"})).notes

    assert notes(100) == ()
    assert notes(64) == ("not with texts of 72 words, which it does not take: AssertionError: too long",)


def test_there_are_enough_mutants():
    assert len(MUTANTS) >= 50
    assert len({str(mutant) for mutant in MUTANTS}) == len(MUTANTS)
    assert {mutant.twin for mutant in MUTANTS if "/" not in mutant.twin} == {path.stem for path in TWINS.glob("*.py")}
    assert len(ZOO) >= 15


@pytest.mark.parametrize("was", ["absent", "x"])
def test_an_edit_finds_its_place_once_or_is_refused(was):
    """Otherwise a mutant could be its twin, or two bugs."""
    assert edited("y = x + x", "y", "z", "a mutant") == "z = x + x"
    with pytest.raises(ValueError, match=f"a mutant: the source has '{was}' [02] times"):
        edited("y = x + x", was, "z", "a mutant")


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
