"""A setting by the name that other libraries give it is answered with what it is called here."""

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.options import options_of
from paddle_tfm.other_names import OTHER_NAMES, name_here
from paddle_tfm.recipe.loading import load
from paddle_tfm.recipe.sections import keys
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.registry import Registry


def problem(override):
    with pytest.raises(UserError) as error:
        load("reverse", [override]).runs()
    return str(error.value)


@pytest.mark.parametrize(
    ("override", "here"),
    [
        ("lr=1e-3", "'train.schedule.peak'"),
        ("train.lr=1e-3", "'train.schedule.peak'"),
        ("train.batch_size=32", "'train.max_tokens', in tokens with their padding"),
        ("model.num_layers=3", "'model.encoder_layers' and 'model.decoder_layers'"),
        ("patience=2", "'evaluate.patience'"),
        ("model.steps=5", "'train.steps'"),
    ],
)
def test_a_key(override, here):
    key = override.split("=")[0]
    assert problem(override).endswith(f"{key}  unknown key '{key.split('.')[-1]}'; here that is {here}")


@pytest.mark.parametrize(
    "override", ["seeds={at_most: 3, looks: [3], smallest_effect: 1}", "tune.baseline=x", "train.seeds=3"]
)
def test_a_key_that_stands_in_no_section(override):
    section = override.partition("=")[0].partition(".")[0]
    assert problem(override).splitlines()[-1].endswith(f"it stands outside of '{section}'")


def test_an_option_of_a_component(registry: Registry):
    for kind, option in (("optimizer", "lr"), ("schedule", "max_lr")):
        plan = registry.resolve(kind, {"name": "adam" if kind == "optimizer" else "cosine", option: 0.1}, kind)
        assert f"no option '{option}'; here that is 'train.schedule.peak'" in str(plan.problems[0])


def settings_named(text):
    return [part for part in text.split("'") if part[:1].isalpha()]


@pytest.mark.parametrize("place", OTHER_NAMES)
def test_the_names_here_are_settings_and_the_others_are_none(place, registry: Registry):
    sections = {name: keys(field.annotation) for name, field in Settings.model_fields.items()}
    for here, names in OTHER_NAMES[place].items():
        options = (
            {key for entry in registry.names(place) for key in registry.options(place, entry)} if place in KINDS else ()
        )
        for path in settings_named(here):
            section, _, key = path.partition(".")
            assert path in options or (section in sections and (not key or key.split(".")[0] in sections[section])), (
                path
            )
        for name in names.split():
            assert name_here(place, name) == here, f"{name} stands twice"
            if place in ("optimizer", "schedule"):
                components = {entry: options_of(registry.entry(place, entry).load()) for entry in registry.names(place)}
                assert not [entry for entry, options in components.items() if name in options], name
            else:
                assert not [section for section, keys in sections.items() if name in (section, *keys)], name
