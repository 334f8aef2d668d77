"""Several values of a setting on the command line: how a comma is read, and which variants come of it."""

import itertools
from pathlib import Path

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.loading import load


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "text, items",
    [
        ("layer", ["layer"]),
        ("layer, null", ["layer", None]),
        ("{name: shaw, clip: 4}", [{"name": "shaw", "clip": 4}]),
        ("{name: shaw, clip: 4},none", [{"name": "shaw", "clip": 4}, "none"]),
        ("[1,2]", [[1, 2]]),
        ("[1,2],[3]", [[1, 2], [3]]),
        ("'a,, b'", ["a,, b"]),
        ("'a, b',\"c, ]\"", ["a, b", "c, ]"]),
        ("don't,won't", ["don't", "won't"]),
        ("{a: 'x, }', b: 1},2", [{"a": "x, }", "b": 1}, 2]),
    ],
)
def test_a_comma_divides_values_outside_of_brackets_braces_and_quotes(text, items):
    assert yaml_lines.values(text) == items


def test_lists_make_a_grid_and_every_run_is_that_of_one_value_each():
    recipe = load("reverse", ["model.norm=layer,{name: rms, eps: 1e-3}", "model.placement=pre,post", "seeds=[1, 2]"])
    runs = recipe.runs()
    assert len(runs) == 8 and "duration" not in recipe.data
    products = itertools.product(["layer", "{name: rms, eps: 1e-3}"], ["pre", "post"])
    for run, (norm, placement) in zip(runs, products):
        (alone,) = load("reverse", [f"model.norm={norm}", f"model.placement={placement}"]).runs()
        for key in ("variant", "duration"):
            alone.data.pop(key, None), run.data.pop(key, None)
        assert run.data == alone.data


def test_variants_are_trained_with_each_value_and_the_baseline_is_that_with_the_first():
    recipe = load("compare-norms", ["model.placement=pre,post"])
    assert list(recipe.variants())[:4] == ["layer-pre", "layer-post", "layer-std-pre", "layer-std-post"]
    assert recipe.data["baseline"] == "layer-pre"
    run = next(run for run in recipe.runs() if run.name == "batch-post/seed-1")
    assert run.settings.model.placement == "post"
    assert run.settings.model.norm == {"encoder": "batch", "decoder": "layer"}
    chosen = load("compare-norms", ["baseline=rms-post", "model.placement=pre,post"])
    assert chosen.data["baseline"] == "rms-post" and chosen.runs()


def test_a_list_is_a_further_axis_of_a_grid_or_takes_the_place_of_one():
    grid = "base: base.yaml\nbaseline: layer-pre\ngrid: {model.norm: [layer, rms], model.placement: [pre, post]}\n"
    Path("mine.yaml").write_text(grid, "utf-8")
    more = load("mine.yaml", ["model.dropout=0.0,0.1"])
    assert len(more.variants()) == 8 and more.data["baseline"] == "layer-pre-0.0" and not more.expand()[1]
    other = load("mine.yaml", ["model.norm=dyt,none"])
    assert list(other.variants()) == ["dyt-pre", "dyt-post", "none-pre", "none-post"]
    assert "baseline" not in other.data and not other.expand()[1]
    (problem, *_) = load("mine.yaml", ["model.norm=rms"]).expand()[1]
    assert "variant 'layer-pre' sets model.norm itself" in problem.message and "model.norm=…,…" in problem.message


def test_options_of_a_component_that_is_set_beside_them():
    runs = load("reverse", ["train.schedule=cosine", "train.schedule.peak=1e-3,2e-3"]).runs()
    assert [run.settings.train.schedule for run in runs] == [{"name": "cosine", "peak": peak} for peak in (1e-3, 2e-3)]


@pytest.mark.parametrize(
    "recipe, overrides, sentence",
    [
        ("reverse", ["model.norm=layer,"], "nothing stands before or behind one of its commas"),
        ("reverse", ["model.norm=layer,rms,layer"], "'layer' is there twice"),
        ("reverse", ["seeds=1,2"], r"seeds=\[1,2\]"),
        ("reverse", ["summary=a, b"], "a text with commas in quotes"),
        ("reverse", ["model.norm=layer,rms", "model.norm=dyt,none"], "model.norm has two lists"),
        ("reverse", ["model.norm=layer,rms", "model.norm.encoder=dyt,none"], "two lists of values of one setting"),
        ("reverse", ["model.norm=layer,rms", "model.norm.eps=1e-3"], "'model.norm.eps' changes nothing beside"),
        ("reverse", ["model.norm=dyt", "model.norm=layer,rms"], "'model.norm' changes nothing beside"),
        ("compare-norms", ["model.norm=layer,rms"], "variant 'layer' sets model.norm itself"),
        ("reverse", ["model.norm={name: layer,rms"], "not valid YAML"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_one_sentence(recipe, overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        load(recipe, overrides)
