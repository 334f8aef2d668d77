"""Equal budgets: what a recipe may say of them, before any text is read."""

import pytest
from recipe_text import load_text

from paddle_tfm.errors import RecipeError
from paddle_tfm.recipe.sections.equal import of

HEAD = "base: base.yaml\nname: mine\nsummary: mine\nvariants: {a: {}, b: {model.feed_forward: swiglu}}\n"


@pytest.mark.parametrize(
    ("equal", "sentence"),
    [
        ("token", "unknown budget 'token'; did you mean 'tokens'? Known: flops, parameters, seconds, steps, tokens"),
        ("30m", "unknown budget '30m'. Known: flops, "),
        ("7", "must be one of steps, tokens, flops, seconds, parameters, or `{parameters: model.d_ff}` with a setting, but is 7"),
        ("{tokens: 500}", "with a setting, but is {'tokens': 500}"),
        ("{parameters: train.steps}", "with a setting, but is {'parameters': 'train.steps'}"),
        ("{parameters: model.d_fff}", "solves for model.d_fff, which is no whole number of variant 'a'"),
        ("{parameters: model.dropout}", "solves for model.dropout, which is no whole number of variant 'a'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_budget_is_said_with_its_line(tmp_path, equal, sentence):
    with pytest.raises(RecipeError) as caught:
        load_text(tmp_path, f"{HEAD}equal: {equal}\n").runs()
    (problem,) = str(caught.value).splitlines()[1:]
    assert problem.startswith("  line 5  equal  ") and sentence in problem


def test_a_variant_that_sets_what_is_solved_for_is_refused_and_the_baseline_is_not(tmp_path):
    text = HEAD.replace("swiglu}", "swiglu, model.d_ff: 99, train: {steps: 7}}")
    for budget, setting in (
        ("parameters", "model.d_ff"),
        ("tokens", "train.steps"),
        ("{parameters: model.d_ff}", "model.d_ff"),
    ):
        with pytest.raises(RecipeError, match=f"line 5  equal  variant 'b' sets {setting} itself, which equal"):
            load_text(tmp_path, f"{text}equal: {budget}\n").runs()
        assert load_text(tmp_path, f"{text}equal: {budget}\nbaseline: b\n").runs()
    with pytest.raises(RecipeError, match="is for variants beside a baseline, but there is one variant"):
        load_text(tmp_path, HEAD.partition("variants")[0] + "equal: flops\n").runs()
    claim = "claims: {c: {says: s, source: of our own, metric: loss, variant: a, at_most: 1}}\n"
    with pytest.raises(RecipeError, match="seconds are not reproducible, so no claim can be judged by them"):
        load_text(tmp_path, f"{HEAD}{claim}equal: seconds\n").runs()


@pytest.mark.parametrize(
    ("tune", "equal", "sentence"),
    [
        ("space: {model.dropout: [0.0, 0.1]}", "flops", None),
        ("space: {train.schedule.peak: {log: [1e-3, 1e-2]}}, steps: 50", "parameters", None),
        ("space: {model.norm: [layer, rms]}", "parameters", "line 6  equal       parameters are solved before `tune` chooses model.norm, which"),
        ("space: {train.max_tokens: [64, 128]}", "tokens", "line 6  equal       tokens are solved before `tune` chooses train.max_tokens, which"),
        ("space: {model.dropout: [0.0, 0.1]}", "seconds", "line 6  equal       seconds are measured before any training, with values that `tune`"),
        ("space: {model.dropout: [0.0, 0.1]}, steps: 50", "tokens", "line 5  tune.steps  of all trials would be as many, and `equal: tokens` gives each"),
    ],
)  # fmt: skip
def test_what_costs_nothing_may_be_tuned_beside_an_equal_budget(tmp_path, tune, equal, sentence):
    problems = load_text(tmp_path, f"{HEAD}tune: {{{tune}, trials: 2}}\nequal: {equal}\n").expand()[1]
    said = [" ".join([f"line {each.line}", each.path, each.message]) for each in problems]
    assert len(said) == (sentence is not None) and all(line.startswith(" ".join(sentence.split())) for line in said)


def test_steps_are_what_a_recipe_says_by_saying_nothing(tmp_path):
    for text in ("", "equal: steps\n"):
        recipe = load_text(tmp_path, HEAD + text)
        assert of(recipe.data).setting == "" and all("equal" not in run.data for run in recipe.runs())
    assert of(load_text(tmp_path, HEAD, ["equal={parameters: model.d_model}"]).data) == ("parameters", "model.d_model")
    (tmp_path / "above.yaml").write_text(f"{HEAD}equal: flops\n", "utf-8")
    assert "equal" not in load_text(tmp_path, "base: above.yaml\n").data
