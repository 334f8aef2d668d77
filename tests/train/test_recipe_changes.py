"""Which settings changed between two resolved recipes."""

from paddle_tfm.recipe import loading
from paddle_tfm.train.changes import DESCRIPTIVE_KEYS, changes, gaps, was_and_is


def recipe_changes(then, now):
    return was_and_is(gaps((then, {}), (now, {}), DESCRIPTIVE_KEYS))


def data(*overrides):
    return loading.load("reverse", overrides).data


def test_equal_recipes_have_no_change_and_words_about_them_are_none():
    assert recipe_changes(data(), data("summary=other", "name=x", "duration=long")) == []


def test_each_setting_is_named_with_what_it_was_and_is():
    now = data("train.steps=7", "model.norm={name: rms, eps: 1e-3}", "train.ema=0.9", "seeds=[3]")
    before = data()
    assert set(recipe_changes(before, now)) == {
        f"train.steps was {before['train']['steps']} and is 7",
        "model.norm was layer and is {name: rms, eps: 0.001}",
        "train.ema was null and is 0.9",
        "seeds was [1] and is [3]",
    }


def test_a_component_without_options_is_its_name_in_either_form():
    assert recipe_changes(data("model.norm={name: rms}"), data("model.norm=rms")) == []


def test_an_option_of_the_same_component_is_a_setting_of_its_own():
    assert recipe_changes(data("model.norm={name: rms, eps: 1e-3}"), data("model.norm={name: rms, eps: 1e-4}")) == [
        "model.norm.eps was 0.001 and is 0.0001"
    ]
    assert recipe_changes(data("model.norm=rms"), data("model.norm.eps=1e-4", "model.norm.name=rms")) == [
        "model.norm.eps was absent and is 0.0001"
    ]


def test_the_splits_whose_texts_changed_are_named():
    then, now = ({"recipe": 1, "data": {"train": train, "test": "b"}, "products": "float32"} for train in "ac")
    assert "data changed (the texts of train)" in changes(then, now)
