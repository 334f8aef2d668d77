"""The kit's invariants, quickly: each component in one small model. `pytest -m conformance` tries all
checks on all scenes, pairs of components, and broken ones."""

import pytest

from paddle_tfm import create_registry
from paddle_tfm.testing import checks
from paddle_tfm.testing.invariants import COMPONENTS, LAYERS
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.models.size import USUAL
from paddle_tfm.testing.results import Failed, Note, Passed, Skip

REGISTRY = create_registry()
OPTIONS = {  # what is tried beside the options that a component needs
    "chain": {"parts": ["sinusoidal", "alibi"]},
    "randomized": {"encoding": {"name": "chain", "parts": ["sinusoidal", "rotary", "shaw"]}, "longest": 100},
    "nope_hybrid": {"every": 2},
}
QUICK = ("causal", "padding", "neighbours", "cached", "beams")
MIXED_NORMS = {
    "encoder": "batch",
    "decoder": {"self": "rms", "cross": "layer", "feed_forward": "layer_std", "final": "rms"},
}


def scene_of(kind: str, name: str, options=None) -> Scene:
    subject = ComponentUnderTest(REGISTRY, kind, name, options)
    value = subject.at(subject.site_names) if subject.site_names else subject.spec
    return Scene(subject, USUAL, subject.settings(USUAL, value), "wherever it may stand")


def failures(scene: Scene, names: tuple[str, ...] = QUICK) -> dict[str, str]:
    """Check → what it says, of those of these names that fail where the component does not expect it."""
    results = {check.name: check.once(scene) for check in checks(scene.subject.kind) if check.name in names}
    assert set(results) == set(names)
    expected = scene.subject.expected_failures
    return {name: each.text for name, each in results.items() if isinstance(each, Failed) and name not in expected}


def some_entries():
    """A third, and what needs options, which the kit tries nowhere else; `pytest -m conformance` tries all of them."""
    entries = [entry for entry in REGISTRY if entry.kind in LAYERS and not entry.wrong_on_purpose]
    for number, entry in enumerate(entries):
        if number % 3 == 0 or entry.name in OPTIONS:
            yield pytest.param(entry.kind, entry.name, id=f"{entry.kind} {entry.name}")


@pytest.mark.parametrize("kind, name", some_entries())
def test_a_component_on_one_scene(kind, name):
    """Whatever the registry holds: a new variant is checked by being registered."""
    assert failures(scene_of(kind, name, OPTIONS.get(name))) == {}


def test_norms_of_several_kinds_in_one_model():
    subject = ComponentUnderTest(REGISTRY, "norm", "batch")
    assert failures(Scene(subject, USUAL, subject.settings(USUAL, MIXED_NORMS), "mixed")) == {}


# -------------------------------------------------------------------------------------------------------------- the kit


@pytest.mark.parametrize("kind", [*COMPONENTS, "encoder-decoder", "search", "schedule", "optimizer", "metric"])
def test_every_check_says_what_holds_what_follows_and_where_to_look(kind):
    assert checks(kind)
    for check in checks(kind):
        assert check.invariant and (check.information or (check.consequence and check.hint)), check.name
    assert len({check.name for check in checks(kind)}) == len(checks(kind))


def test_a_check_that_returns_no_result_is_an_error_of_the_kit():
    check = checks("norm")[0]
    for result in (Passed(), Note("n"), Skip("s"), Failed("f")):
        assert type(check)("x", "i", "c", "h", lambda target, result=result: result).once(None) == result
    with pytest.raises(TypeError, match="the check x must return Passed, Note, Skip or Failed, but returned None"):
        type(check)("x", "i", "c", "h", lambda target: None).once(None)
    failed = type(check)("x", "i", "c", "h", lambda target: 1 / 0).once(None)
    assert failed.text.startswith("ZeroDivisionError: division by zero (test_invariants.py line")
