"""`claims:` and `fast:` of a recipe: what they must say, before anything is trained."""

import pytest
from recipe_text import load_text, problems_of

from paddle_tfm.errors import UserError
from paddle_tfm.recipe.loading import load
from paddle_tfm.recipe.reading import shipped

START = "base: reverse.yaml\nvariants: {a: {}, b: {model.norm: rms}}\n"
OF_ALL = "says: x, source: of our own, metric: exact_match, variant: a"


@pytest.mark.parametrize(
    "claim, path, sentence",
    [
        ("{says: x, source: of our own, metric: loss, variant: aa, at_most: 1}", ".variant", "unknown variant 'aa'"),
        (f"{{{OF_ALL}, over: c, above: 1}}", ".over", "unknown variant 'c'"),
        (f"{{{OF_ALL}, over: a, above: 1}}", ".over", "'a' would be compared with itself"),
        ("{says: x, source: of our own, metric: bleu, variant: a, at_most: 1}", ".metric", "unknown metric 'bleu'"),
        (f"{{{OF_ALL}, over: b}}", "", "has no smallest effect, without which nothing can be decided; add `above`"),
        (f"{{{OF_ALL}}}", "", "has no limit"),
        (f"{{{OF_ALL}, above: 1}}", ".above", "`above` does not belong to a value"),
        (f"{{{OF_ALL}, over: b, at_most: 1}}", ".at_most", "`at_most` does not belong to a difference"),
        (f"{{{OF_ALL}, over: b, above: 1, below: 1}}", "", "has `above` and `below`; make two claims of it"),
        (f"{{{OF_ALL}, over: b, above: -1}}", ".above", "must be greater than or equal to 0 or null, but is -1"),
        (f"{{{OF_ALL}, over: b, measure: percent, below: 100}}", ".below", "must be less than 100 percent"),
        (f"{{{OF_ALL}, measure: ratio, at_most: 1}}", ".measure", "a ratio compares two variants; add `over`"),
        (f"{{{OF_ALL}, at_least: 2, at_most: 1}}", ".at_least", "must be at most `at_most` (1), but is 2"),
        (f"{{{OF_ALL}, at: decoder, at_most: 1}}", ".at", "goes with `metric: gradient_norm`"),
        ("{says: x, source: of our own, metric: gradient_norm, variant: a, at_most: 1}", "", "needs `at`, a path"),
        ("{says: x, source: a friend, metric: loss, variant: a, at_most: 1}", ".source", "must have an arXiv number"),
        ("{source: of our own, metric: loss, variant: a, at_most: 1}", ".says", "is missing; a claim needs `says`"),
        (f"{{{OF_ALL}, abov: 1}}", ".abov", "unknown key 'abov'; did you mean 'above'?"),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_decided_is_refused_with_its_line(claim, path, sentence, tmp_path, registry):
    (problem,) = problems_of(load_text(tmp_path, START + f"claims:\n  one: {claim}\n"), registry)
    assert problem[:2] == (4, f"claims.one{path}") and sentence in problem[2]


@pytest.mark.parametrize(
    "fast, path, sentence",
    [
        ("{train.stepps: 3}", "train.stepps", "unknown key 'stepps'; did you mean 'steps'?"),
        ("{train.steps: many}", "train.steps", "must be a whole number, but is 'many'"),
        ("{model.norm: layer}", "fast.model.norm", "variant 'b' sets model.norm itself, so this would change nothing"),
        ("{variants.a.train.steps: 3}", "fast.variants.a.train.steps", "is no part of a budget"),
    ],
)
def test_a_smaller_budget_that_cannot_be_is_refused_with_its_line(fast, path, sentence, tmp_path, registry):
    (problem, *_) = problems_of(load_text(tmp_path, START + f"fast: {fast}\n"), registry)
    assert problem[0] == 3 and problem[1] == path and sentence in problem[2]


def test_a_smaller_budget_goes_below_overrides_and_has_a_name_of_its_own(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(START + "fast: {train: {steps: 7}, seeds: [1, 2], evaluate.every: 3}\n", "utf-8")
    recipe = load(str(file), ["evaluate.every=4"], fast=True)
    assert recipe.name == "mine-fast" and recipe.arguments == [str(file), "evaluate.every=4", "--fast"]
    runs = recipe.runs()
    assert len(runs) == 4
    assert all((run.settings.train.steps, run.settings.evaluate.every) == (7, 4) for run in runs)
    assert load(str(file)).runs()[0].settings.train.steps == 1500


def test_without_a_smaller_budget_fast_is_refused():
    with pytest.raises(UserError, match="states no smaller budget for --fast; add one"):
        load("copy", fast=True)


def test_claims_and_a_smaller_budget_change_no_run_and_are_not_inherited(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(START, "utf-8")
    plain = [run.data for run in load(str(file)).runs()]
    file.write_text(START + f"fast: {{train.steps: 7}}\nclaims: {{one: {{{OF_ALL}, over: b, above: 0}}}}\n", "utf-8")
    recipe = load(str(file))
    assert [run.data for run in recipe.runs()] == plain
    assert list(recipe.claims()) == ["one"]
    (tmp_path / "below.yaml").write_text("base: mine.yaml\n", "utf-8")
    below = load(str(tmp_path / "below.yaml"))
    assert below.claims() == {} and "fast" not in below.data


def test_every_finding_states_claims_and_a_smaller_budget(registry):
    for name in shipped():
        recipe = load(name)
        if name.startswith("findings/") and name not in ("findings/why-mine-fails", "findings/transplant-source"):
            assert recipe.claims() and recipe.data.get("fast"), name
            assert len(recipe.data["seeds"]) >= 3, name
        if recipe.data.get("fast"):
            assert load(name, fast=True).expand()[1] == []
