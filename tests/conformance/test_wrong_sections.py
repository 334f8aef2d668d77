"""The kit's checks of sections: each fails for a section with the mistake that it is for, and for no other."""

import pytest

from paddle_tfm.protocols import Section
from paddle_tfm.testing import FAIL, examine, installed, with_class


class Sound(Section):
    heading = "Sound"

    def html(self, facts):
        return "<p>sound<br>and short</p>"


class LacksSeeds(Sound):
    """It takes the second seed of each variant."""

    def html(self, facts):
        return f"<p>{[runs[1].seed for runs in facts.groups.values()]}</p>"


class NoWords(Sound):
    def html(self, facts):
        return " "


class SaysYes(Sound):
    def applies(self, facts):
        return "yes"


class Torn(Sound):
    def html(self, facts):
        return "<p>torn <b>page</p>"


class Elsewhere(Sound):
    def html(self, facts):
        return '<p><img src="https://a-server.example/logo.png" alt=""></p>'


class Script(Sound):
    def html(self, facts):
        return "<p onclick='go()'>click</p>"


class Raw(Sound):
    """A name as HTML."""

    def html(self, facts):
        return f"<p>{facts.comparison.rows[0].variant.partition(' $')[0]}</p>"


class Counter(Sound):
    count = 0

    def html(self, facts):
        Counter.count += 1
        return f"<p>{self.count}</p>"


class Sorts(Sound):
    def html(self, facts):
        facts.comparison.rows.reverse()
        return "<p>sorted</p>"


@pytest.fixture(scope="module")
def registry():
    return installed()


@pytest.mark.parametrize(
    ("cls", "failing"),
    [
        (Sound, set()),
        (LacksSeeds, {"renders"}),
        pytest.param(NoWords, {"renders"}, marks=pytest.mark.conformance),
        pytest.param(SaysYes, {"renders"}, marks=pytest.mark.conformance),
        (Torn, {"sound_page"}),
        pytest.param(Elsewhere, {"sound_page"}, marks=pytest.mark.conformance),
        pytest.param(Script, {"sound_page"}, marks=pytest.mark.conformance),
        (Raw, {"users_text"}),
        (Counter, {"same_again"}),
        pytest.param(Sorts, {"same_again"}, marks=pytest.mark.conformance),
    ],
)
def test_a_mistake_is_found_by_its_check(cls, failing, registry):
    report = examine(*with_class(registry, cls), registry=registry)
    failed = {outcome.check.name for outcome in report.failures if outcome.status == FAIL}
    # Behind the decisive check nothing can be said.
    assert failed == failing or (failing == {"renders"} and "renders" in failed)
