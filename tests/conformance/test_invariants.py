"""The kit's invariants, quickly: each component in one small model, built once. `pytest -m conformance` tries all
checks on all scenes, pairs of components, and broken ones."""

from functools import cached_property

import numpy as np
import paddle
import pytest

from paddle_tfm import create_registry
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.recipe.sites import PER_SITE, sites
from paddle_tfm.testing import checks
from paddle_tfm.testing.invariants import COMPONENTS, LAYERS
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.models.size import USUAL
from paddle_tfm.testing.results import Failed, Note, Passed, Skip, difference

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


class QuickSubject(ComponentUnderTest):
    """Tries all sites at once, and each by itself only where that is refused: most components stand everywhere."""

    @cached_property
    def _accepted(self):
        if self.kind in PER_SITE:
            names = [f"{stack}.{sublayer}" for stack, sublayer in sites(self.kind)]
            if not self._refusal(everywhere := self.at(names)):
                return everywhere, names, {}
        return super()._accepted

    def scene(self) -> "QuickScene":
        value = self.at(self.site_names) if self.site_names else self.spec
        return QuickScene(self, USUAL, self.settings(USUAL, value), "wherever it may stand")


class QuickScene(Scene):
    """One model for all checks: the quick ones only evaluate it, and what one of them left in it, the next would
    see."""

    @cached_property
    def _model(self) -> Transformer:
        return super().model()

    def model(self) -> Transformer:
        return self._model


def failures(scene: Scene, names: tuple[str, ...] = QUICK) -> dict[str, str]:
    """Check → what it says, of those of these names that fail where the component does not expect it."""
    results = {check.name: check.once(scene) for check in checks(scene.subject.kind) if check.name in names}
    assert set(results) == set(names)
    expected = scene.subject.expected_failures
    return {name: each.text for name, each in results.items() if isinstance(each, Failed) and name not in expected}


def every_entry():
    """A third, and what needs options, which the kit tries nowhere else; all by `pytest -m conformance`."""
    entries = [entry for entry in REGISTRY if entry.kind in LAYERS and not entry.wrong_on_purpose]
    for number, entry in enumerate(entries):
        marks = () if number % 3 == 0 or entry.name in OPTIONS else pytest.mark.conformance
        yield pytest.param(entry.kind, entry.name, id=f"{entry.kind} {entry.name}", marks=marks)


@pytest.mark.parametrize("kind, name", every_entry())
def test_a_component_on_one_scene(kind, name):
    """Whatever the registry holds: a new variant is checked by being registered."""
    assert failures(QuickSubject(REGISTRY, kind, name, OPTIONS.get(name)).scene()) == {}


def test_norms_of_several_kinds_in_one_model():
    subject = QuickSubject(REGISTRY, "norm", "batch")
    assert failures(QuickScene(subject, USUAL, subject.settings(USUAL, MIXED_NORMS), "mixed")) == {}


def test_rows_that_are_not_the_same_decode_otherwise():
    """What the check `beams` compares would differ if rows were mixed up."""
    scene = QuickSubject(REGISTRY, "norm", "layer").scene()
    model, batch = scene.model(), scene.batch()
    words = paddle.to_tensor([[5], [6], [7], [8], [9]])
    with paddle.no_grad():
        _, state = model.decode(batch.target_in[:, :2], model.start(scene.memory(model, batch)))
        _, state = model.decode(words, state.select(paddle.to_tensor([0, 0, 1, 1, 2])))
        usual, other = (
            model.decode(words, state.select(paddle.to_tensor(rows), False))[0].numpy()
            for rows in ([1, 0, 3, 3, 4], [2, 0, 3, 3, 4])
        )
    assert difference(usual[1:], other[1:], "rows that stay") is None
    assert isinstance(difference(usual, other, "another row"), Failed)


def test_without_positions_the_encoder_sees_a_bag(make_model, make_batch):
    """A bidirectional encoder without positions is permutation-equivariant; any encoding ends that."""
    batch = make_batch((6,), (3,))
    turned = batch.source.flip([1])
    for position, equivariant in (("none", True), ("sinusoidal", False), ("rotary", False), ("alibi", False)):
        model = make_model(f"model.position={position}")
        if position == "alibi":  # its distances survive the reversal of all: turn two neighbours instead
            order = paddle.to_tensor([1, 0, 2, 3, 4, 5])
            turned, back = batch.source.index_select(order, 1), order
        else:
            turned, back = batch.source.flip([1]), paddle.arange(5, -1, -1)
        x = model.encode(batch.source, batch.source_valid).x
        y = model.encode(turned, batch.source_valid).x.index_select(back, 1)
        assert np.allclose(x.numpy(), y.numpy(), atol=1e-5) == equivariant, position


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
