"""A ladder: what a recipe may say of its sizes, and which runs it has."""

import pytest
from recipe_text import load_text

from paddle_tfm.errors import RecipeError

HEAD = "base: base.yaml\nname: mine\nsummary: mine\nvariants: {a: {}, b: {model.norm: rms}}\n"
SIZES = "ladder:\n  sizes:\n    s: {model: {d_model: 16}}\n    m: {model.d_model: 32, train: {steps: 9}}\n"


@pytest.mark.parametrize(
    ("ladder", "sentence"),
    [
        ("{sizes: {s: {}}}", "ladder.sizes  must be two or more, or there is no slope, but there is one, 's'; as in `ladder: {sizes: {s:"),
        ("{sizes: {s: 3, m: {}}}", "ladder.sizes.s  must be a mapping, but is 3"),
        ("{sizes: [s, m]}", "ladder.sizes  must be a mapping, but is ['s', 'm']"),
        ("{sizes: {s: {}, m/l: {}}}", "ladder.sizes.m/l  'm/l' must be at most 30 letters, digits, `_`, `.` and `-`"),
        ("{size: {s: {}, m: {}}}", "ladder.size  unknown key 'size'; did you mean 'sizes'? Known: sizes"),
        ("[s, m]", "ladder  must be a mapping"),
        ("{sizes: {s: {}, m: {seeds: [1]}}}", "ladder.sizes.m.seeds  belongs to the recipe; a size cannot set it"),
        ("{sizes: {s: {}, m: {model.norm: dyt}}}", "ladder.sizes.m.model.norm  variant 'b' sets model.norm itself, so it would be the same at"),
        ("{sizes: {s: {}, m: {model.d_model: wide}}}", "ladder.sizes.m.model.d_model  must be a whole number, but is 'wide'"),
        ("{sizes: {s: {}, m: {model.d_modle: 8}}}", "ladder.sizes.m.model.d_modle  unknown key 'd_modle'; did you mean 'd_model'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_ladder_is_said_with_its_line(tmp_path, ladder, sentence):
    with pytest.raises(RecipeError) as caught:
        load_text(tmp_path, f"{HEAD}ladder: {ladder}\n").runs()
    problems = str(caught.value).splitlines()[1:]
    assert any(sentence.partition("  ")[2] in problem for problem in problems), problems
    assert all(problem.startswith("  line 5  ") for problem in problems)


def test_a_ladder_compares_variants_with_seeds_that_are_listed(tmp_path):
    alone = HEAD.replace("variants: {a: {}, b: {model.norm: rms}}\n", "")
    with pytest.raises(RecipeError, match="line 4  ladder  compares variants at several sizes, but there is one"):
        load_text(tmp_path, alone + SIZES).runs()
    with pytest.raises(RecipeError, match=r"line 9  seeds  are added until .* a `ladder` needs a list"):
        load_text(tmp_path, HEAD + SIZES + "seeds: {at_most: 5, looks: [3, 5]}\n").runs()


def test_what_a_size_sets_cannot_be_set_for_all(tmp_path):
    with pytest.raises(RecipeError, match=r"size 'm' sets train.steps itself.*; override ladder.sizes.m.train.steps"):
        load_text(tmp_path, HEAD + SIZES, ["train.steps=7"]).runs()
    runs = load_text(tmp_path, HEAD + SIZES, ["ladder.sizes.m.train.steps=7"]).runs()
    assert {run.data["train"]["steps"] for run in runs if run.data["size"] == "m"} == {7}
    from paddle_tfm.recipe.sections import fast

    (problem,) = fast.problems(load_text(tmp_path, HEAD + SIZES + "fast: {train.steps: 5}\n"))
    assert (
        problem.line == 9 and problem.message == "size 'm' sets train.steps itself, so this would change nothing there"
    )


def test_runs_are_variants_by_sizes_by_seeds_and_each_is_a_recipe_of_one_size(tmp_path):
    recipe = load_text(tmp_path, HEAD + SIZES + "seeds: [1, 2]\nbaseline: b\n")
    runs = recipe.runs()
    order = [f"{variant}@{size}/seed-{seed}" for seed in (1, 2) for size in "sm" for variant in "ab"]
    assert [run.name for run in runs] == order
    assert list(recipe.written_variants()) == ["a", "b"]
    last = runs[-1].data
    assert (last["model"]["d_model"], last["train"]["steps"], last["model"]["norm"]) == (32, 9, "rms")
    assert last["model"]["d_ff"] == 256 and last["train"]["max_tokens"] == 2048  # beside what the size sets
    assert (last["size"], last["variant"]) == ("m", "b@m") and "ladder" not in last
    from paddle_tfm.recipe import yaml_lines

    again = load_text(tmp_path, yaml_lines.dump(last)).runs()
    assert [run.name for run in again] == ["b@m/seed-2"] and again[0].data == last


def test_values_on_the_command_line_are_variants_at_every_size(tmp_path):
    recipe = load_text(
        tmp_path, HEAD.partition("variants")[0] + SIZES, ["model.norm=layer,rms", "model.dropout=0.0,0.1"]
    )
    names = [run.variant for run in recipe.runs()]
    assert names == [f"{norm}-{rate}@{size}" for size in "sm" for norm in ("layer", "rms") for rate in (0.0, 0.1)]
    with pytest.raises(RecipeError, match=r"variant '16' sets model.d_model itself"):
        load_text(tmp_path, HEAD.partition("variants")[0] + SIZES, ["model.d_model=16,32"]).runs()


def test_a_recipe_below_another_has_a_ladder_of_its_own(tmp_path):
    (tmp_path / "above.yaml").write_text(HEAD + SIZES, "utf-8")
    below = load_text(tmp_path, "base: above.yaml\nvariants: {c: {}, d: {model.norm: rms}}\n")
    assert [run.name for run in below.runs()] == ["c/seed-1", "d/seed-1"]
