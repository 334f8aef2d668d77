"""Reports as readers see them, in Chromium: nothing beyond the window at four widths, enough contrast in light and dark, no
error, no network, everything within reach of the keyboard; and figures that show the numbers of the verdict."""

import re
from pathlib import Path

import pytest

from paddle_tfm import create_registry
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.comparison.verdict import verdict

pytestmark = pytest.mark.browser
MEASURE = (Path(__file__).parent / "measure.js").read_text("utf-8")
WIDTHS = (360, 768, 1280, 1920)


@pytest.fixture(scope="session")
def comparison(runs):
    return compare(collect([runs]), "dates", runs, "token_accuracy", "base")


@pytest.fixture(scope="session")
def page(comparison):
    return Report(comparison, create_registry(), pytest.fail).write()["page"]


def unfold(chromium):
    chromium.js("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")


def require_readable(chromium, page, width, dark, media="screen"):
    chromium.open(page, width, dark, media)
    if media == "screen":
        unfold(chromium)
    seen = chromium.js(MEASURE)
    assert seen["texts"] > 60
    assert seen["wide"] == []
    assert seen["faint"] == []
    assert seen["small"] == []
    assert seen["broken"] == []
    assert chromium.complaints() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_everything_can_be_read(chromium, page, width, dark):
    require_readable(chromium, page, width, dark)


def test_on_paper_it_is_light_whatever_the_screen_is_and_has_nothing_to_choose(chromium, page):
    require_readable(chromium, page, 794, dark=True, media="print")
    assert chromium.js("[...document.querySelectorAll('input[type=radio]')].every(e => !e.getClientRects().length)")
    assert chromium.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.fixture(scope="session")
def card(runs):
    """The model card of a run, with attention maps."""
    from paddle_tfm.cli import group

    group.main(["report", str(runs / "旋转位置" / "seed-1")], standalone_mode=False)
    return runs / "旋转位置" / "seed-1" / "report.html"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_model_card_can_be_read_too(chromium, card, width, dark):
    require_readable(chromium, card, width, dark)


def test_a_layer_of_attention_is_chosen_by_keyboard(chromium, card):
    chromium.open(card, 768)
    unfold(chromium)
    shown = "[...document.querySelectorAll('.map')].map(map => getComputedStyle(map).display !== 'none')"
    # two layers of the encoder, of cross-attention, which is shown first, and of the decoder
    assert chromium.js(shown) == [False, False, False, True, False, False]
    chromium.js("document.querySelector('#layer-3').focus()")
    chromium.press("ArrowLeft", 37)
    assert chromium.js(shown) == [False, False, True, False, False, False]
    shades = chromium.js("document.querySelectorAll('.map.layer-2 svg path title').length")
    assert shades >= 4


def test_the_measure_sees_what_is_wrong(chromium, page, tmp_path):
    """Otherwise it could pass by seeing nothing."""
    bad = tmp_path / "bad.html"
    wrong = (
        '<div style="width:900px">far too wide</div><p style="color:#888">too faint</p><p style="font-size:9px">tiny</p>'
        '<div style="width:20px;overflow:hidden">cut off, as nobody can see</div>'
        '<p style="width:2em;overflow-wrap:anywhere">scattered</p>'
        '<script>console.error("of the console"); fetch("http://localhost:9/"); throw new Error("thrown")</script>'
    )
    bad.write_text(page.read_text("utf-8").replace("<main", f"{wrong}<main"), "utf-8")
    chromium.open(bad, 360)
    seen = chromium.js(MEASURE)
    assert any("far too wide" in line for line in seen["wide"]) and any("cut off" in line for line in seen["wide"])
    assert any("breaks scattered" in line for line in seen["broken"])
    assert any("too faint" in line for line in seen["faint"]) and any("tiny" in line for line in seen["small"])
    complaints = " ".join(chromium.complaints())
    assert all(word in complaints for word in ("of the console", "Uncaught", "localhost"))


def test_the_verdict_comes_first_on_a_phone(chromium, page, comparison):
    chromium.open(page, 360)
    text, bottom = chromium.js(
        "(() => { const v = document.querySelector('.verdict'); return [v.textContent, v.getBoundingClientRect().bottom]; })()"
    )
    assert text == verdict(comparison)
    assert bottom < 640  # without scrolling


@pytest.mark.parametrize(("width", "most"), [(360, 5000), (1280, 2500)])
def test_question_verdict_and_figure_come_first_and_all_else_is_folded(chromium, page, width, most):
    chromium.open(page, width)
    shown = "[...document.querySelectorAll('section, .within')].filter(e => e.checkVisibility()).map(e => e.id)"
    assert [anchor for anchor in chromium.js(shown) if anchor] == ["scores"]
    assert chromium.js("document.documentElement.scrollHeight") <= most
    folds = chromium.js("[...document.querySelectorAll('summary')].map(e => [e.innerText, e.checkVisibility()])")
    assert len(folds) > 8 and all(is_shown and "\n" in text for text, is_shown in folds)  # a heading, and what is in it
    # A link from elsewhere opens what it names.
    chromium.js("location.hash = '#learning-curves'")
    assert [anchor for anchor in chromium.js(shown) if anchor] == ["scores", "learning-curves"]


def test_figures_stack_on_a_phone_and_stand_side_by_side_on_a_desk(chromium, page):
    places = "[...document.querySelectorAll('.by.steps figure')].map(f => f.getBoundingClientRect().left)"
    chromium.open(page, 360)
    unfold(chromium)
    assert len(set(chromium.js(places))) == 1
    chromium.open(page, 1280)
    unfold(chromium)
    assert len(set(chromium.js(places))) == 2


def test_the_keyboard_reaches_everything(chromium, page):
    """From the top: the link past the head, what is folded, which the space bar opens, the axes, the variants; arrows
    change the axis, the space bar hides a variant, and what has the focus is outlined."""
    chromium.open(page, 1280)
    visited = []
    for _ in range(40):
        chromium.press("Tab", 9)
        name, outlined = chromium.js(
            "(() => { const e = document.activeElement; return [e.id || e.hash || e.nextElementSibling?.id || e.tagName,"
            "getComputedStyle(e).outlineStyle !== 'none']; })()"
        )
        if name == "BODY":
            break
        assert outlined, name
        visited.append(name)
        if name == "learning-curves":
            chromium.press(" ", 32)
        if name == "x-steps":
            shown = "getComputedStyle(document.querySelector('.by.tokens')).display"
            assert chromium.js(shown) == "none"
            chromium.press("ArrowRight", 39)
            assert chromium.js(shown) == "grid"
        if name == "show-1":
            line = "getComputedStyle(document.querySelector('.by.tokens .s1')).display"
            assert chromium.js(line) == "inline"
            chromium.press(" ", 32)
            assert chromium.js(line) == "none"
    assert visited[0] == "#content" and "outputs" in visited
    assert "x-steps" in visited and "show-3" in visited


def test_a_screen_reader_gets_tables_names_and_figures_in_words(chromium, page):
    chromium.open(page, 360)  # where tables are shown as cards
    unfold(chromium)
    nodes = chromium("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    assert roles.count("table") >= 4 and roles.count("rowheader") >= 12 and "columnheader" in roles
    names = [
        node["name"]["value"] for node in nodes if not node["ignored"] and node["role"]["value"] in ("image", "img")
    ]
    assert any(re.match(r"validation token accuracy .*by training steps: .*base ends at \d", name) for name in names)
    assert any("95% interval of the difference" in name for name in names)
