"""Seeds that are added while a question is open: what a recipe may say of them, and which runs it has."""

import pytest
from recipe_text import load_text

from paddle_tfm.errors import RecipeError

HEAD = "base: base.yaml\nname: mine\nsummary: mine\n"
TWO = f"{HEAD}variants: {{a: {{}}, b: {{model.norm: rms}}}}\n"


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        ("{at_most: 12, looks: [3, 15]}", "seeds.looks  look after 15 seeds, but `at_most` is 12"),
        ("{at_most: 12, looks: [5, 3, 12]}", "seeds.looks  must rise, but are [5, 3, 12]"),
        ("{at_most: 12, looks: [2, 12]}", "seeds.looks  must begin after 3 seeds or more, but begin after 2"),
        ("{at_most: 12, looks: [3, 8]}", "seeds.looks  end after 8 seeds, so that none would be at `at_most`, 12"),
        ("{at_most: 12, looks: [three]}", "seeds.looks[0]  must be a whole number, but is 'three'"),
        ("{at_most: 12}", "seeds.looks  is missing; as in `seeds: {at_most: 12, looks: [3, 5, 8, 12]}`"),
        ("{looks: [3, 5]}", "seeds.at_most  is missing; as in `seeds: {at_most: 12, looks: [3, 5, 8, 12]}`"),
        ("{at_most: 2, looks: [2]}", "seeds.at_most  must be greater than or equal to 3, but is 2"),
        ("{at_most: 5, looks: [3, 5], most: 3}", "seeds.most  unknown key 'most'; did you mean 'at_most'? Known: at_most,"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_looks_is_said_in_a_sentence(tmp_path, seeds, sentence):
    with pytest.raises(RecipeError) as caught:
        load_text(tmp_path, f"{TWO}seeds: {seeds}\n").runs()
    (problem,) = str(caught.value).splitlines()[1:]
    assert problem.startswith(f"  line 5  {sentence}")


def test_seeds_are_added_for_variants_only(tmp_path):
    with pytest.raises(RecipeError, match="are added until variants are told apart, but there is one variant"):
        load_text(tmp_path, HEAD + "seeds: {at_most: 5, looks: [3, 5]}\n").runs()


def test_claims_need_seeds_that_are_set_before(tmp_path):
    claim = "claims: {c: {says: s, source: of our own, metric: loss, variant: a, at_most: 1}}\n"
    assert load_text(tmp_path, TWO + claim).runs()
    with pytest.raises(RecipeError, match="`claims` need a list that is set before"):
        load_text(tmp_path, TWO + claim + "seeds: {at_most: 5, looks: [3, 5]}\n").runs()


@pytest.mark.parametrize("effect", ["0", "-1", "big"])
def test_the_smallest_effect_is_a_number_above_zero(tmp_path, effect):
    with pytest.raises(RecipeError, match="smallest_effect  must be"):
        load_text(tmp_path, f"{HEAD}smallest_effect: {effect}\n").runs()


def test_all_seeds_that_may_be_trained_are_runs_and_none_knows_of_the_plan(tmp_path):
    recipe = load_text(tmp_path, TWO + "seeds: {at_most: 5, looks: [3, 5]}\nsmallest_effect: 0.5\n")
    runs = recipe.runs()
    assert [run.name for run in runs] == [f"{variant}/seed-{seed}" for seed in range(1, 6) for variant in "ab"]
    assert runs[-1].data["seeds"] == [5] and "smallest_effect" not in runs[-1].data
    assert recipe.seed_plan().looks == [3, 5]
    assert load_text(tmp_path, TWO + "seeds: {at_most: 5, looks: [3, 5]}\n", ["seeds=[7]"]).seed_plan() is None
    assert (
        load_text(tmp_path, TWO, ["seeds={at_most: 3, looks: [3]}", "seeds.at_most=4", "seeds.looks=[4]"])
        .seed_plan()
        .at_most
        == 4
    )
