"""What a recipe may say, how its parts merge, and how everything wrong with it is told at once."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path

import pytest

from paddle_tfm.comparison.report.report import FILES
from paddle_tfm.errors import Problem, RecipeError, UserError
from paddle_tfm.plugins import create_plugins
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.expansion import OF_A_SWEEP, label
from paddle_tfm.recipe.loading import load
from paddle_tfm.recipe.reading import find, shipped
from paddle_tfm.recipe.sites import PER_SITE, at_site, model_components, sites, tokenizer_specs
from paddle_tfm.registry import Registry
from paddle_tfm.runs.sweep_files import COMMAND_FILE, LOOKS_FILE, SOLUTIONS_FILE
from paddle_tfm.sweep.check import check


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(create_plugins())


def write(text: str, name: str = "mine.yaml", base: str = "base: base.yaml\n") -> str:
    Path(name).write_text(base + text, "utf-8")
    return name


def merged(text: str, *overrides: str) -> dict:
    return load(write(text), overrides).data


def error_lines(
    text: str, registry: Registry | None = None, overrides=(), base: str = "base: base.yaml\n"
) -> list[str]:
    """The lines of the error of a recipe, without the first."""
    recipe = load(write(text, base=base), overrides)
    with pytest.raises(RecipeError) as caught:
        check(recipe, registry) if registry else recipe.runs()
    return str(caught.value).splitlines()[1:]


# -------------------------------------------------------------------------------------------------------------- YAML


@pytest.mark.parametrize(
    "text, value",
    [
        ("1e-5", 1e-5), ("1E+3", 1000.0), (".5", 0.5), (".inf", float("inf")), ("-3", -3), ("1_000", 1000), ("0x1F", 31),
        ("true", True), ("null", None), ("", None), ("no", "no"), ("Yes", "Yes"), ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"), ("012", "012"), ("1.2.3", "1.2.3"), ("猫", "猫"),
        ("[1, a]", [1, "a"]), ("{name: rotary, base: 500}", {"name": "rotary", "base": 500}), ("'3'", "3"),
    ],
)  # fmt: skip
def test_numbers_and_words_are_those_of_yaml_1_2(text, value):
    parsed = yaml_lines.value(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_keys_are_words_as_written():
    data, origins = yaml_lines.load("1: a\nnull: b\n1e-3: {no: c}\n", "f")
    assert data == {"1": "a", "null": "b", "1e-3": {"no": "c"}}
    assert origins["1e-3.no"] == ("f", 3)


def test_every_path_has_its_line():
    _, origins = yaml_lines.load("a:\n  b: 1\n  c: [x,\n      {d: 2}]\n# comment\ne: {f: 3}\n", "f")
    lines = {"a": 1, "a.b": 2, "a.c": 3, "a.c[0]": 3, "a.c[1]": 4, "a.c[1].d": 4, "e": 6, "e.f": 6}
    assert {path: line for path, (_, line) in origins.items() if path} == lines


@pytest.mark.parametrize(
    "text, message",
    [
        ("a: 1\nb: 2\na: 3\n", "f line 3: 'a' is set twice; keep one"),
        ("a:\n  b: 1\n  c: {d: 1, d: 2}\n", "f line 3: 'a.c.d' is set twice; keep one"),
        ("a: 1\n  b: 2\n", "f line 2: not valid YAML: mapping values are not allowed here"),
        ("a: [1, 2\n", "f line 2: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: b\n---\nc: d\n", "f line 2: not valid YAML: but found another document"),
        (
            "a: 1\nb: !!python/object/apply:os.system [ls]\n",
            "f line 2: not valid YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object",
        ),
        (
            "a：1\nb: 2\n",
            "f line 2: not valid YAML: mapping values are not allowed here; `：`, here or in the",
        ),
        ("a: *x\n", "f line 1: not valid YAML: found undefined alias 'x'"),
        ("? [a]\n: 1\n", "f line 1: not valid YAML: a key must be a word"),
        ("a: !!bool x\n", "f: not valid YAML: 'x'"),
        ("a: \x07\n", "f: not valid YAML: "),
        ("- a\n- b\n", "f: a recipe is a mapping (`key: value` lines), but this is a list"),
        ("just words\n", "f: a recipe is a mapping (`key: value` lines), but this is a str"),
    ],
)
def test_what_is_no_recipe_is_reported_with_its_line(text, message):
    with pytest.raises(UserError) as caught:
        yaml_lines.load(text, "f")
    assert str(caught.value).startswith(message)


def test_aliases_and_merges_are_plain_yaml():
    assert yaml_lines.load("a: &x {b: 1}\nc: {<<: *x, d: 2}\ne: *x\n", "f")[0]["c"] == {"b": 1, "d": 2}


def test_a_file_that_cannot_be_read_is_reported():
    with pytest.raises(UserError, match="absent: cannot be read: No such file"):
        yaml_lines.load_file(Path("absent"))


def test_dumped_text_reads_back_equal():
    words = [
        *["no", "on", "1e-5", "1e-05", "null", "~", "#x", "{a}", "[a]", "it's", "12:30"],
        "",
        " ",
        "a: b",
        '"q"',
        "猫 在",
    ]
    words += ["line\nbreak", "- x", "true", "0x1F", "2024-01-01", "012", "=", "*a", "&b", "!c", "%d", "@e", "|", ">"]
    words += ["x" * 150, "x y " * 60, "é\x85\u2028k", "trail ", ": ", "a #b", "{", "}", ",", "?", "-", "---", "..."]
    keys = [word for word in words if word.strip() and len(word.splitlines()) == 1]
    draw = random.Random(1)

    def value(depth: int) -> object:
        chance = draw.random() + depth / 4
        if chance < 0.25:
            return {draw.choice(keys): value(depth + 1) for _ in range(draw.randint(0, 4))}
        if chance < 0.45:
            return [value(depth + 1) for _ in range(draw.randint(0, 5))]
        number = draw.choice([draw.random() * 10 ** draw.randint(-12, 12), draw.randint(-(10**6), 10**6)])
        return draw.choice([draw.choice(words), draw.choice(words), number, None, True, False, float("inf")])

    for _ in range(400):
        data = {draw.choice(keys): value(0) for _ in range(draw.randint(0, 5))}
        assert yaml_lines.load(yaml_lines.dump(data), "f")[0] == data


# -------------------------------------------------------------------------------------------------------- find, merge


def test_shipped_recipes_are_found_by_name_and_files_by_path():
    assert find("reverse") == shipped()["reverse"]
    assert load(write("", "x.yaml")).name == "x"  # not the base's: its runs get a folder of their own
    assert load(write("", "我的 recipe.yaml")).name == "我的-recipe"
    assert load(write("name: y", "x.yaml")).name == "y"
    assert load(write("{}", "z.yaml", base="")).name == "z"
    with pytest.raises(
        UserError, match="unknown recipe 'revers'; did you mean 'reverse'\\? Known: answer-by-copying, base, "
    ):
        find("revers")
    with pytest.raises(UserError, match=r"nowhere/x\.yaml: no such file; shipped recipes: answer-by-copying, base, "):
        find("nowhere/x.yaml")


def test_the_files_of_a_sweep_are_called_as_those_who_write_them_say():
    assert {COMMAND_FILE, SOLUTIONS_FILE, LOOKS_FILE, "comparison.json", FILES} <= OF_A_SWEEP


def test_what_is_no_file_is_no_recipe(tmp_path):
    (tmp_path / "seed-1").mkdir()
    with pytest.raises(UserError, match=r"seed-1 is a folder, and a recipe is a file$"):
        find(str(tmp_path / "seed-1"))
    (tmp_path / "seed-1" / "recipe.yaml").touch()
    with pytest.raises(UserError, match=r"seed-1 is a folder, and a recipe is a file, here .*/seed-1/recipe\.yaml$"):
        find(str(tmp_path / "seed-1"))


def test_sections_merge_key_by_key_and_lists_are_replaced():
    base = load("base").data
    data = merged("model: {d_model: 32}\nevaluate: {metrics: [perplexity]}\nseeds: [4, 5]\n")
    assert data["model"] == {**base["model"], "d_model": 32}
    assert data["evaluate"] == {**base["evaluate"], "metrics": ["perplexity"]}
    assert data["seeds"] == [4, 5]
    assert data["train"] == base["train"]


def test_an_empty_section_changes_nothing():
    assert merged("train: {}\ntask: {}\nmodel: {norm: {}}\n") == merged("")


def test_a_component_is_replaced_when_its_name_is_given_and_keeps_it_when_only_options_are():
    base = "train: {schedule: {name: inverse_sqrt, peak: 1e-3, warmup: 200}}\nmodel: {norm: layer}\n"
    write(base, "first.yaml")
    assert merged("train: {schedule: {warmup: 9}}")["train"]["schedule"] == {
        "name": "inverse_sqrt", "peak": 1e-3, "warmup": 9,
    }  # fmt: skip
    assert merged("train: {schedule: {name: noam, warmup: 9}}")["train"]["schedule"] == {"name": "noam", "warmup": 9}
    assert merged("train: {schedule: noam}")["train"]["schedule"] == "noam"
    assert merged("model: {norm: {eps: 1e-3}}")["model"]["norm"] == {"name": "layer", "eps": 1e-3}


def test_bases_chain_from_beside_the_file_first():
    write("model: {d_model: 32, num_heads: 2}\ntrain: {steps: 7}\n", "reverse.yaml")  # hides the shipped one
    Path("other").mkdir()
    write("model: {d_model: 48}", "other/child.yaml", base="base: ../reverse.yaml\n")
    data = load("other/child.yaml").data
    assert (data["model"]["d_model"], data["model"]["num_heads"], data["train"]["steps"]) == (48, 2, 7)
    assert data["name"] == "child"
    assert "base" not in data


def test_a_base_s_own_comparison_is_not_inherited():
    write("baseline: a\nduration: 1 minute\nvariants: {a: {}, b: {model.norm: rms}}\n", "first.yaml")
    data = load(write("", base="base: first.yaml\n")).data
    assert not {"baseline", "variants", "duration"} & set(data)


# --------------------------------------------------------------------------------------------------------- overrides


def test_overrides_set_dotted_paths_with_yaml_values():
    data = load("base", ["train.steps=5", "model.norm=rms", "seeds=[1, 2]", "train.clip_norm=", "name=a=b"]).data
    assert (data["train"]["steps"], data["model"]["norm"], data["seeds"]) == (5, "rms", [1, 2])
    assert data["train"]["clip_norm"] is None
    assert data["name"] == "a=b"
    assert load("base", ["model.norm.eps=1e-3"]).data["model"]["norm"] == {"name": "layer", "eps": 1e-3}
    assert load("base", ["model={d_model: 8}"]).data["model"]["num_heads"] == 4


@pytest.mark.parametrize("text", ["train.steps", "=5", "", "--x"])
def test_an_override_without_equals_is_reported(text):
    with pytest.raises(UserError) as caught:
        load("base", [text])
    assert str(caught.value) == f"override '{text}' must look like a.b=value, for instance train.steps=500"


def test_an_override_that_is_no_value_is_reported():
    with pytest.raises(UserError, match=r"'\[1, 2' line 1: not valid YAML"):
        load("base", ["seeds=[1, 2"])
    with pytest.raises(UserError, match="'a' is set twice"):
        load("base", ["model.norm={a: 1, a: 2}"])


def test_problems_of_overrides_point_at_the_command_line(registry):
    lines = error_lines("", registry, ["model.norm={encoder: bath, decoder: layer}", "train.stps=3"])
    assert [line.split()[:3] for line in lines] == [
        ["command", "line", "train.stps"],
        ["command", "line", "model.norm.encoder"],
    ]
    (line,) = error_lines("model: {norm: {encoder: rms, decoder: rms}}", registry, ["model.norm={encoder: bath}"])
    assert line.startswith("  command line  model.norm.encoder  unknown norm 'bath'; did you mean 'batch'?")


# ----------------------------------------------------------------------------------------------------------- per site


def test_a_choice_for_one_place_leaves_the_others_what_they_had():
    norm = {"name": "layer", "eps": 1e-3}
    assert merged(f"model: {{norm: {yaml_lines.dump({'x': norm})[3:].strip()}}}", "model.norm.encoder=batch")["model"][
        "norm"
    ] == {"encoder": "batch", "decoder": norm}
    assert merged("model: {attention: {cross: linear}}")["model"]["attention"] == {
        "encoder": "multihead", "decoder": "multihead", "cross": "linear",
    }  # fmt: skip
    assert merged("", "model.attention.decoder.cross=linear")["model"]["attention"] == {
        "encoder": "multihead", "decoder": {"self": "multihead", "cross": "linear"},
    }  # fmt: skip
    assert merged("", "model.position.decoder.self=rotary")["model"]["position"]["decoder"] == {"self": "rotary"}
    assert merged("tokenizer: {target: char}")["tokenizer"] == {"source": "word", "target": "char"}
    assert merged("", "tokenizer.source.lowercase=true")["tokenizer"] == {
        "source": {"name": "word", "lowercase": True}, "target": "word",
    }  # fmt: skip


def test_options_of_one_place_go_beside_its_name():
    assert merged("model: {norm: {name: rms, eps: 1}}", "model.norm.encoder.eps=2")["model"]["norm"] == {
        "encoder": {"name": "rms", "eps": 2}, "decoder": {"name": "rms", "eps": 1},
    }  # fmt: skip
    assert merged("", "model.norm.encoder.eps=1e-3")["model"]["norm"] == {
        "encoder": {"name": "layer", "eps": 1e-3}, "decoder": "layer",
    }  # fmt: skip


ENCODER, DECODER, CROSS = ("encoder", "self"), ("decoder", "self"), ("decoder", "cross")


@pytest.mark.parametrize(
    "kind, value, site, choice",
    [
        ("norm", "layer", ENCODER, ("", "layer")),
        ("norm", {"name": "layer", "eps": 1}, CROSS, ("", {"name": "layer", "eps": 1})),
        ("norm", {"encoder": "batch", "decoder": "layer"}, ENCODER, (".encoder", "batch")),
        ("norm", {"encoder": "batch", "decoder": "layer"}, ("encoder", "final"), (".encoder", "batch")),
        ("norm", {"encoder": "batch", "decoder": "layer"}, CROSS, (".decoder", "layer")),
        ("norm", {"encoder": "a", "decoder": "b", "cross": "c"}, CROSS, (".cross", "c")),
        ("norm", {"encoder": "a", "decoder": "b", "cross": "c"}, DECODER, (".decoder", "b")),
        ("norm", {"encoder": "a", "decoder": "b", "final": "c"}, ("decoder", "final"), (".final", "c")),
        ("attention", {"encoder": "a", "decoder": {"self": "b", "cross": "c"}}, CROSS, (".decoder.cross", "c")),
        ("attention", {"encoder": "a", "decoder": {"self": "b", "cross": "c"}}, DECODER, (".decoder.self", "b")),
        ("attention", {"self": "a", "cross": "c"}, ENCODER, (".self", "a")),
        ("attention", "a", ("encoder", "feed_forward"), ("", None)),
        ("feed_forward", "a", ("decoder", "feed_forward"), ("", "a")),
        ("feed_forward", "a", ENCODER, ("", None)),
        ("placement", {"encoder": "a", "decoder": "b"}, DECODER, (".decoder", "b")),
        ("position", "rotary", ENCODER, ("", "rotary")),
        ("position", "rotary", CROSS, ("", None)),
        ("position", {"encoder": "a", "decoder": "b"}, CROSS, ("", None)),
        ("position", {"encoder": "a", "decoder": "b", "cross": "c"}, CROSS, (".cross", "c")),
        ("position", {"encoder": "a", "decoder": {"self": "b", "cross": "c"}}, CROSS, (".decoder.cross", "c")),
        ("position", {"encoder": "a", "decoder": {"self": "b", "cross": "c"}}, DECODER, (".decoder.self", "b")),
    ],
)
def test_at_site(kind, value, site, choice):
    assert at_site(kind, value, *site) == choice


def test_a_site_of_which_nothing_is_said_is_reported():
    with pytest.raises(ValueError, match=r"^says nothing about decoder; add `decoder:`$"):
        at_site("norm", {"encoder": "batch"}, *DECODER)
    with pytest.raises(ValueError, match=r"^says nothing about decoder\.cross; add `decoder:`$"):
        at_site("attention", {"self": "a"}, *CROSS)


def test_every_kind_says_its_sites():
    assert set(sites("norm")) >= set(sites("attention"))
    assert all({stack for stack, _ in sites(kind)} == {"encoder", "decoder"} for kind in PER_SITE)


@pytest.mark.parametrize(
    "override, path",
    [
        ("model.attention.feed_forward=linear", "model.attention.feed_forward"),
        ("model.placement.decoder={self: post, cross: pre}", "model.placement.decoder.cross"),
        ("model.norm.encoder.cross=rms", "model.norm.encoder.cross"),
        ("model.feed_forward.cross=swiglu", "model.feed_forward.cross"),
        ("model.attention.decoder.encoder=linear", "model.attention.decoder.encoder"),
    ],
)
def test_a_choice_that_would_be_ignored_is_refused(override, path):
    (line,) = error_lines("", overrides=[override])
    assert line == f"  command line  {path}  a model has no {path.split('.')[1]} there, or another key decides it"


def test_components_are_listed_once_with_their_path():
    model = load("base", ["model.norm={encoder: batch, decoder: layer}", "model.position.cross=rotary"]).data["model"]
    listed = list(model_components(model))
    assert [(path, spec) for kind, path, spec in listed if kind == "norm"] == [
        ("model.norm.encoder", "batch"),
        ("model.norm.decoder", "layer"),
    ]
    assert ("position", "model.position.cross", "rotary") in listed
    assert len({path for _, path, _ in listed}) == len(listed)


def test_a_tokenizer_is_for_both_sides_or_one_each():
    assert tokenizer_specs("word") == {"source": ("tokenizer", "word"), "target": ("tokenizer", "word")}
    assert tokenizer_specs({"source": "a", "target": "b"}) == {
        "source": ("tokenizer.source", "a"), "target": ("tokenizer.target", "b"),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------- variants and seeds


def test_every_variant_runs_under_every_seed_and_a_seed_is_complete_before_the_next():
    runs = load(write("seeds: [7, 3]\nvariants:\n  a: {}\n  b: {model.norm: rms, train: {steps: 3}}\n")).runs()
    assert [run.name for run in runs] == ["a/seed-7", "b/seed-7", "a/seed-3", "b/seed-3"]
    last = runs[-1]
    assert (last.settings.model.norm, last.settings.train.steps, last.settings.seeds) == ("rms", 3, [7, 3])
    assert last.data["seeds"] == [3]
    assert last.data["train"]["max_tokens"] == 2048
    assert not {"variants", "grid", "baseline"} & set(last.data)
    assert runs[0].settings.model.norm == "layer"


def test_without_variants_there_is_one_run_a_seed():
    assert [run.name for run in load("base", ["seeds=[1, 2]"]).runs()] == ["default/seed-1", "default/seed-2"]


def test_a_grid_is_a_product_with_names():
    text = "grid:\n  model.norm: [layer, {name: rms, eps: 1e-3}]\n  train.label_smoothing: [0.0, 0.1]\n"
    runs = load(write(text)).runs()
    assert [run.variant for run in runs] == ["layer-0.0", "layer-0.1", "rms-eps0.001-0.0", "rms-eps0.001-0.1"]
    assert runs[3].settings.model.norm == {"name": "rms", "eps": 1e-3}
    assert runs[3].settings.train.label_smoothing == 0.1


def test_a_full_model_and_one_without_each_of_its_parts():
    text = """\
model: {norm: rms, position: {encoder: alibi, decoder: {name: shaw, clip: 4}}}
ablate: [{model.norm: none}, model.position.decoder, {train.clip_norm: null}]
"""
    recipe = load(write(text))
    full, *without = recipe.runs()
    assert (full.variant, full.data["model"]["norm"]) == ("full", "rms")
    assert [run.variant for run in without] == ["without-norm", "without-position.decoder", "without-clip_norm"]
    assert [run.data["model"]["norm"] for run in without] == ["none", "rms", "rms"]
    assert without[1].data["model"]["position"] == {"encoder": "alibi", "decoder": "sinusoidal"}  # base.yaml's
    assert [run.data["train"]["clip_norm"] for run in (full, *without)] == [1.0, 1.0, 1.0, None]
    assert recipe.taken_away() == {
        "without-norm": "norm: rms → none",
        "without-position.decoder": "position.decoder: {name: shaw, clip: 4} → sinusoidal",
        "without-clip_norm": "clip_norm: 1.0 → null",
    }
    other = load("mine.yaml", ["model.norm=batch"])  # sets the full model
    assert [run.data["model"]["norm"] for run in other.runs()] == ["batch", "none", "batch", "batch"]
    with pytest.raises(
        UserError, match=r"model.dropout= with several values makes a grid, but the recipe has `ablate`"
    ):
        load("mine.yaml", ["model.dropout=0,0.1"])


def test_names_of_a_grid_s_values():
    values = [{"encoder": "batch", "decoder": "layer"}, "a/b", {"name": "shaw", "clip": 8}, ["a", 1], None]
    assert [label(value) for value in values] == ["batch+layer", "a_b", "shaw-clip8", "a+1", "None"]


@pytest.mark.parametrize("name", ["1e-05", "no", "sinusoidal+alibi", "中文"])
def test_a_run_s_own_recipe_reads_back_whatever_the_variant_is_called(name):
    (run,) = load(write(f"variants: {{{name}: {{}}}}")).runs()
    Path("run.yaml").write_text(yaml_lines.dump(run.data), "utf-8")
    (again,) = load("run.yaml").runs()
    assert (again.variant, again.data) == (name, run.data)


# --------------------------------------------------------------------------------------------------------- all errors


def test_several_problems_are_reported_at_once_in_the_format_of_the_design(registry):
    text = (
        "name: ablate\nmodel:\n  norm: {name: layer, epz: 1e-6}\n  position:\n    decoder: rotary\n    encoder: rotry\n"
    )
    with pytest.raises(RecipeError) as caught:
        check(load(write("#\n#\n#\n#\n#\n" + text, "ablate.yaml")), registry)
    first, norm, position = str(caught.value).splitlines()
    assert first == "ablate.yaml has 2 problems"
    assert (
        norm
        == "  line 9   model.norm.epz          'layer' has no option 'epz'; did you mean 'eps'? Its options: bias, eps"
    )
    assert position.startswith(
        "  line 12  model.position.encoder  unknown position 'rotry'; did you mean 'rotary'? Known: alibi, chain, "
    )


def test_the_text_of_an_error_is_a_table():
    problems = [Problem("a.b", "is bad", "f.yaml", 3), Problem("a", "is worse", "other.yaml", 12), Problem("", "x")]
    assert str(RecipeError("f.yaml", problems)).splitlines() == [
        "f.yaml has 3 problems",
        "  line 3              a.b  is bad",
        "  other.yaml line 12  a    is worse",
        "                           x",
    ]
    assert str(RecipeError("f", problems[:1])).startswith("f has 1 problem\n  f.yaml line 3  a.b  is bad")


@pytest.mark.parametrize(
    "text, line",
    [
        ("modl: 3", "line 2  modl  unknown key 'modl'; did you mean 'model'? Known: ablate, baseline,"),
        ("3: 4", "line 2  3  unknown key '3'. Known: "),
        ("model: 3", "line 2  model  must be a mapping, but is 3"),
        ("train: {steps: 1.5}", "line 2  train.steps  must be a whole number, but is 1.5"),
        ("train: {steps: 0}", "line 2  train.steps  must be greater than 0, but is 0"),
        ("train:\n  steps：20", "line 2  train  must be a mapping, but is 'steps：20'; write `key: value`, with a"),
        ("model:", "line 2  model  must be a mapping, but is empty"),
        ("train: {label_smoothing: x}", "line 2  train.label_smoothing  must be a number, but is 'x'"),
        ("model: {scale_embedding: yes}", "line 2  model.scale_embedding  must be true or false, but is 'yes'"),
        ("task:", "line 2  task  must be a name or {name: …, options…}, but is empty"),
        ("summary: [a]", "line 2  summary  must be text, but is ['a']"),
        ("name: a/b", "line 2  name  must be of letters, digits, `_`, `.` and `-`, but is 'a/b'"),
        ("evaluate: {metrics: []}", "line 2  evaluate.metrics  must be a list of one or more, but is []"),
        ("seeds: [1, 1]", "line 2  seeds  must be distinct, but are [1, 1]"),
        ("evaluate: {metrics: loss}", "line 2  evaluate.metrics  must be a list, but is 'loss'"),
        ("seeds: 3", "line 2  seeds  must be a list, but is 3"),
        ("seeds: [1, x]", "line 2  seeds[1]  must be a whole number, but is 'x'"),
        ("baseline: [a]", "line 2  baseline  must be text or null, but is ['a']"),
        ("variants: [a]", "line 2  variants  must be a mapping, but is ['a']"),
        ("variants: {a/b: {}}", "line 2  variants.a/b  'a/b' must be a folder's name: at most 100 characters, no slash, no control character, no dot at its beginning"),
        *(
            (f"variants: {{{name}: {{}}}}", f"line 2  variants.{name}  '{name}' is the name of what a sweep writes itself")
            for name in ("comparison.html", "x.partial")
        ),
        ("variants:\n  a: {seeds: [3]}", "line 3  variants.a.seeds  belongs to the recipe; a variant cannot set it"),
        ("grid: {model.norm: layer}", "line 2  grid.model.norm  must be a list, but is 'layer'"),
        ("grid: {model.norm: [rms, rms]}", "line 2  grid  two combinations are called 'rms'; write `variants`, each"),
        ("grid: {model.norm: [rms]}", "line 2  grid.model.norm  has one level, and nothing to compare it with; add"),
        ("ablate: model.norm", "line 2  ablate  must be a list, but is 'model.norm'"),
        ("ablate: [{model.norm: a, model.head: b}]", "line 2  ablate[0]  must be a path, model.norm, or one with what"),
        ("ablate: [{model.norm: c}]\ngrid: {model.norm: [a, b]}", "line 2  ablate  stands beside `grid`; keep one of the two"),
        ("ablate: [model.nrom]", "line 2  ablate[0]  the full model has no 'model.nrom' to take away; did you mean"),
        ("ablate: [model.norm.eps]", "line 2  ablate[0]  the full model has no 'model.norm.eps' to take away"),
        ("ablate: [model.norm]", "line 2  ablate[0]  the full model has layer at 'model.norm' already, so nothing is"),
        ("ablate: [{train.ema: 0.5}, {train.ema: 0.9}]", "line 2  ablate[1]  two models would be called 'without-ema'"),
        ("ablate: [seeds]", "line 2  ablate[0]  the full model has [1] at 'seeds' already"),
        ("ablate: [{seeds: [2]}]", "line 2  ablate.seeds  belongs to the recipe; a variant cannot set it"),
    ],
)  # fmt: skip
def test_structure_is_checked(text, line):
    (problem,) = error_lines(text)
    assert problem.startswith(f"  {line}")


@pytest.mark.parametrize(
    "text, line",
    [
        ("task: revers", "line 2  task  unknown task 'revers'; did you mean 'reverse'? Known: "),
        ("evaluate: {best: blue}", "line 2  evaluate.best  unknown metric 'blue'. Known: exact_match, loss, "),
        ("evaluate: {metrics: [{nme: x}], best: loss}", "line 2  evaluate.metrics[0]  must be a name or {name: "),
        ("model: {num_heads: 7}", "line 2  model.attention  'multihead' refuses: `num_heads` must divide"),
        ("train: {optimizer: {name: adam, beta1: 3}}", "line 2  train.optimizer  'adam' refuses: `beta1` must be"),
        ("model: {share_embeddings: true}", "line 2  model.share_embeddings  needs one vocabulary for both sides; set "),
        ("requires: [my_norms]",
         "line 2  requires  plugin 'my_norms' is missing; install it, or pass --plugin FILE.py"),
    ],
)  # fmt: skip
def test_components_are_checked(text, line, registry):
    (problem,) = error_lines(text, registry)
    assert problem.startswith(f"  {line}")


def test_a_recipe_without_base_says_what_is_missing():
    lines = error_lines("model: {d_model: 8}\n", base="")
    assert any("train" in line and "is missing; start with `base: base.yaml`" in line for line in lines)
    assert len(lines) > 20


def test_what_is_wrong_inside_a_variant_points_at_the_variant_s_line(registry):
    text = """\
model: {norm: {encoder: batch, decoder: layer}}
seeds: [1, 2]
variants:
  good: {}
  bad:
    model.norm: {encoder: bath, decoder: layer}
    model.position: rotry
  worse:
    modl.norm: rms
    train: {steps: x}
"""
    structure = error_lines(text)
    assert [line.split("  ")[1:3] for line in structure] == [["line 11", "train.steps"], ["line 10", "modl"]]
    lines = error_lines(text.split("  worse")[0], registry)
    assert [line.split("  ")[1:3] for line in lines] == [["line 7", "model.norm.encoder"], ["line 8", "model.position"]]


def test_what_is_wrong_in_a_grid_points_at_its_axis(registry):
    text = "model: {norm: {encoder: batch, decoder: layer}}\ngrid:\n  model.norm:\n  - {encoder: bath, decoder: rms}\n  - rms\n"
    (line,) = error_lines(text, registry)
    assert line.startswith("  line 4  model.norm.encoder  unknown norm 'bath'")


def test_a_required_plugin_that_failed_to_load_is_quoted(registry):
    plugins = create_plugins()
    plugins.failures["my_norms"] = "ModuleNotFoundError: No module named 'zzz'"
    (line,) = error_lines("requires: [my_norms]", Registry(plugins))
    assert line.endswith("plugin 'my_norms' is missing; it failed to load: ModuleNotFoundError: No module named 'zzz'")
    assert len(check(load(write("requires: [norm, attention]")), registry)) == 1


@pytest.mark.parametrize(
    "override", ["model.norm=rms", "model.norm.encoder=rms", "model.norm.eps=1", "model={norm: rms}"]
)
def test_an_override_of_what_every_variant_sets_would_change_nothing_and_is_refused(override, registry):
    """A user would otherwise compare a run with itself."""
    variants = "variants: {a: {model.norm: layer}, b: {model.norm: batch}}"
    lines = error_lines(variants, registry, [override])
    assert len(lines) == 2
    assert "variant 'a' sets model.norm itself" in lines[0] and "override variants.a.model.norm" in lines[0]
    assert error_lines(variants, registry, ["model.normal=3"]) != lines
    recipe = load(write(variants), ["variants.a.model.norm=rms", "model.placement=post"])
    assert [run.data["model"]["norm"] for run in recipe.runs()] == ["rms", "batch"]
    assert {run.data["model"]["placement"] for run in recipe.runs()} == {"post"}


# --------------------------------------------------------------------------------------------------------------- show


def test_what_show_prints_is_a_recipe_that_says_the_same():
    overrides = ["evaluate.search={name: beam, size: 2}", "train.max_ratio=7.5", "summary='no: 1e-5'"]
    for name, lines in [*((name, []) for name in sorted(shipped())), ("quickstart", overrides)]:
        recipe = load(name, lines)
        Path("shown.yaml").write_text(yaml_lines.dump(recipe.data), "utf-8")
        again = load("shown.yaml")
        assert again.data == recipe.data
        assert list(again.data) == list(recipe.data)
        assert [run.data for run in again.runs()] == [run.data for run in recipe.runs()]


def test_what_show_prints_can_be_a_base():
    Path("shown.yaml").write_text(yaml_lines.dump(load("quickstart").data), "utf-8")
    data = load(write("train: {steps: 3}", base="base: shown.yaml\n")).data
    wanted = load("quickstart", ["train.steps=3"]).data
    dropped = ("variants", "baseline", "duration", "smallest_effect")
    assert data.pop("name") == "mine" and wanted.pop("name") == "quickstart"
    assert data == {key: value for key, value in wanted.items() if key not in dropped}


def test_what_is_done_with_a_shipped_recipe_is_not_done_to_the_next_one():
    """Each file that ships is parsed once."""
    first = load("quickstart")
    data, lines = deepcopy(first.data), dict(first.origins)
    first.data["model"]["norm"] = "rms"
    first.data["train"].clear()
    first.origins.clear()
    again = load("quickstart")
    assert again.data == data and again.origins == lines
